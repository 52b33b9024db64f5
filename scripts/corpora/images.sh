#!/bin/sh
# Other people's images into DIR/images: sh scripts/corpora/images.sh DIR
#
# They are the tests of GDK Pixbuf, many of them damaged on purpose, and those of Go and of its modules. Of each tenth two copies are made, which end after
# a third and after four fifths. Files that can't be fetched are said, and left out.
set -u
dir=$1/images
mkdir -p "$dir" "$1/images.fetched"
cd "$1/images.fetched" || exit 1

# put DIRECTORY PREFIX copies the images below a directory, each under its path.
put() {
	(cd "$1" && find . -type f | grep -Ei '\.(png|jpe?g|gif|webp|bmp|tiff?|avif|heic|ico)$') | while read -r name; do
		cp "$1/$name" "$dir/$2_$(echo "${name#./}" | tr '/ ' '__')"
	done
}

ls gdk-pixbuf-tests_*.deb >/dev/null 2>&1 || apt-get download -q gdk-pixbuf-tests >/dev/null 2>&1
if [ -d gdk ] || dpkg-deb -x gdk-pixbuf-tests_*.deb gdk; then put gdk gdk; else echo "NOT FETCHED: gdk-pixbuf-tests"; fi
put "$(go env GOROOT)/src/image" go
for module in golang.org/x/image@v0.47.0 github.com/gen2brain/avif@v0.5.3 github.com/gen2brain/heic@v0.4.9; do
	at=$(go mod download -json "$module" | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
	if [ -d "$at" ]; then put "$at" "$(basename "${module%%@*}")"; else echo "NOT FETCHED: $module"; fi
done
chmod -R u+w "$dir"
n=0
for f in "$dir"/*; do
	n=$((n + 1))
	case $f in *.cut?.*) continue ;; esac
	[ $((n % 10)) = 0 ] || continue
	size=$(wc -c <"$f") end=${f##*.}
	head -c $((size / 3)) "$f" >"${f%.*}.cut1.$end"
	head -c $((size * 4 / 5)) "$f" >"${f%.*}.cut2.$end"
done
ls "$dir" | wc -l
