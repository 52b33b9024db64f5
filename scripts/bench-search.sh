#!/bin/sh
# Measures package grep beside ripgrep 15 and 13 and the two Go packages of the field, and prints the tables of docs/benchmarks.md.
#
#	scripts/bench-search.sh [-rounds N] [-only walk|search|process|index] [-rows REGEXP] [-o FILE]
#
# What it needs is fetched once into $SEARCH_BENCH (default: search-bench in the temporary directory), about 4 GB: ripgrep 15 from
# npm, ripgrep 13 and the Linux source from Debian, a node_modules from npm. What cannot be fetched has no rows. A run takes about
# eight minutes on a quiet machine of two cores; run it on no other. What takes longer than 20 s is killed, and its row named.
set -eu
cd "$(dirname "$0")/.."
dir=${SEARCH_BENCH:-${TMPDIR:-/tmp}/search-bench}
mkdir -p "$dir/bin" "$dir/fetch"
dir=$(cd "$dir" && pwd -P)
missing() { echo "bench-search: NOT MEASURED: $*" >&2; }

if [ ! -x "$dir/bin/rg15" ]; then
	(cd "$dir/fetch" && npm pack --silent @vscode/ripgrep-linux-x64@1.18.0 && tar xzf vscode-ripgrep-linux-x64-1.18.0.tgz) >/dev/null
	cp "$dir/fetch/package/bin/rg" "$dir/bin/rg15"
fi
if [ ! -x "$dir/bin/rg13" ]; then
	(cd "$dir/fetch" && apt-get download -qq ripgrep && dpkg-deb -x ripgrep_*.deb rg) >/dev/null 2>&1 &&
		cp "$dir/fetch/rg/usr/bin/rg" "$dir/bin/rg13" || { missing "ripgrep 13 (Debian's ripgrep)" && cp "$dir/bin/rg15" "$dir/bin/rg13"; }
fi
if [ ! -d "$dir/linux" ]; then
	(cd "$dir/fetch" && apt-get download -qq linux-source-6.1 && dpkg-deb -x linux-source-6.1_*.deb src &&
		mkdir -p linux && tar xJf src/usr/src/linux-source-6.1.tar.xz -C linux --strip-components=1 &&
		sed -i '/^# Debian packaging/,$d' linux/.gitignore && mv linux "$dir/linux") || missing "the Linux tree (Debian's linux-source-6.1)"
fi
if [ ! -d "$dir/nm" ]; then
	mkdir -p "$dir/fetch/nm"
	(cd "$dir/fetch/nm" && npm install --ignore-scripts --no-audit --no-fund --silent --no-save next@14.2.3 eslint@8.57.0 webpack@5.91.0 typescript@5.4.5 \
		@mui/icons-material@5.15.15 @mui/material@5.15.15 @emotion/react@11.11.4 @emotion/styled@11.11.5 react@18.2.0 react-dom@18.2.0 \
		date-fns@3.6.0 lodash@4.17.21 aws-sdk@2.1600.0 && mv "$dir/fetch/nm" "$dir/nm") || missing "node_modules (npm)"
fi
[ -d "$dir/go" ] || cp -R "$(go env GOROOT)" "$dir/go"

go build -o "$dir/bin/searchbench" ./scripts/searchbench
"$dir/bin/searchbench" trees "$dir"
exec "$dir/bin/searchbench" compare -dir "$dir" "$@"
