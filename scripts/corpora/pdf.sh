#!/bin/sh
# Other people's PDFs into DIR/pdf: sh scripts/corpora/pdf.sh DIR
#
# pdf/a has manuals of Debian, as they are in its packages, and the samples of Go modules that make PDFs. pdf/b has the tests of
# pdf.js, and the sample files of py-pdf: odd files, each once a report of a bug. PDFJS and SAMPLES name their repositories, or
# git directories of them. What can't be fetched is said, and left out.
set -u
dir=$1/pdf
mkdir -p "$dir/a" "$dir/b" "$dir/fetched"
cd "$dir/fetched" || exit 1
PDFJS=${PDFJS-https://github.com/mozilla/pdf.js}
SAMPLES=${SAMPLES-https://github.com/py-pdf/sample-files}

# put DIRECTORY PREFIX SET copies the PDFs below a directory into a set, each under its path.
put() {
	(cd "$1" && find . -name '*.pdf' -o -name '*.pdf.gz') | while read -r name; do
		to=$dir/$3/$2_$(echo "${name#./}" | tr '/ ' '__')
		case $name in
		*.gz) gzip -dc "$1/$name" >"${to%.gz}" ;;
		*) cp "$1/$name" "$to" && chmod u+w "$to" ;;
		esac
	done
}

for package in autoconf-doc bash-doc cvs ddd-doc debian-faq debian-faq-de debian-faq-fr debian-faq-it debian-faq-ja debian-faq-ru \
	debian-faq-zh-cn debian-history debian-policy debian-reference-de debian-reference-en debian-reference-ja debian-reference-zh-tw \
	debmake-doc developers-reference flex-doc gnuplot-doc graphviz-doc installation-guide-amd64 maint-guide maxima-doc octave-doc r-doc-pdf zsh-doc; do
	ls "$package"_*.deb >/dev/null 2>&1 || apt-get download -q "$package" >/dev/null 2>&1
	if [ -d "$package" ] || dpkg-deb -x "$package"_*.deb "$package"; then
		put "$package" "$package" a
	else
		echo "NOT FETCHED: $package"
	fi
done

for module in github.com/pdfcpu/pdfcpu@v0.15.0 github.com/go-pdf/fpdf@v0.9.0 github.com/johnfercher/maroto/v2@v2.3.3 \
	github.com/gen2brain/go-fitz@v1.24.15 github.com/signintech/gopdf@v0.33.0; do
	at=$(go mod download -json "$module" | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
	if [ -d "$at" ]; then
		name=${module%%@*} name=${name%/v2}
		put "$at" "${name##*/}" a
	else
		echo "NOT FETCHED: $module"
	fi
done

# taken REPOSITORY NAME N copies each Nth PDF of a repository into pdf/b.
taken() {
	git=$1
	if [ ! -d "$git" ]; then
		[ -d "$2.git" ] || timeout 600 git clone -q --bare --depth 1 "$git" "$2.git" || { echo "NOT FETCHED: $1"; return; }
		git=$2.git
	fi
	git --git-dir="$git" ls-tree -r --name-only HEAD | grep '\.pdf$' | awk "NR % $3 == 0" | while read -r name; do
		to=$dir/b/$2_$(echo "$name" | tr '/ ' '__')
		git --git-dir="$git" show "HEAD:$name" >"$to" 2>/dev/null || rm "$to"
	done
}
taken "$PDFJS" pdfjs 3
taken "$SAMPLES" samples 1
echo "$(ls "$dir/a" | wc -l) PDFs of manuals and modules, $(ls "$dir/b" | wc -l) of tests"
