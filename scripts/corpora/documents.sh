#!/bin/sh
# Other people's web pages and office files into DIR/documents: sh scripts/corpora/documents.sh DIR
#
# documents/html has pages of Debian's manuals, documents/office the samples and tests of packages of npm and Go. What can't be fetched is said, and
# left out.
set -u
dir=$1/documents
mkdir -p "$dir/html" "$dir/office" "$dir/fetched"
cd "$dir/fetched" || exit 1

# put DIRECTORY NAME SET N NAMES... copies each Nth of the files with such names into a set, each under its path.
put() {
	from=$1 name=$2 set=$3 nth=$4
	shift 4
	for pattern in "$@"; do
		find "$from" -type f -name "$pattern"
	done | LC_ALL=C sort | awk "NR % $nth == 0" | while read -r file; do
		to=$dir/$set/${name}_$(echo "${file#"$from"/}" | tr '/ ' '__')
		cp "$file" "$to" && chmod u+w "$to"
	done
}

for package in apt-doc debian-faq debian-history debian-policy developers-reference git-doc installation-guide-amd64 libstdc++-12-doc \
	maint-guide postgresql-doc-15 python3.11-doc sqlite3-doc zsh-doc; do
	ls "$package"_*.deb >/dev/null 2>&1 || apt-get download -q "$package" >/dev/null 2>&1
	if [ -d "$package" ] || dpkg-deb -x "$package"_*.deb "$package" 2>/dev/null; then
		put "$package/usr/share/doc" "$package" html 40 '*.html' '*.htm'
	else
		echo "NOT FETCHED: $package"
	fi
done

for module in github.com/xuri/excelize/v2@v2.11.1 github.com/thedatashed/xlsxreader@v1.2.8 \
	github.com/unidoc/unioffice@v1.39.0 github.com/fumiama/go-docx@latest github.com/nguyenthenguyen/docx@latest github.com/sajari/docconv@v1.3.8; do
	at=$(go mod download -json "$module" | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
	if [ -d "$at" ]; then
		name=${module%%@*}
		put "$at" "$(echo "${name#github.com/}" | tr / _)" office 1 '*.xlsx' '*.docx' '*.pptx' '*.od[tsp]'
	else
		echo "NOT FETCHED: $module"
	fi
done

for package in mammoth@1.12.0 docx4js@3.3.0 xlsx-populate@1.21.0 exceljs@4.4.0 officeparser@6.0.4 any-text@1.2.0 docxtemplater@3.68.3; do
	[ -d "$package" ] || { mkdir "$package" && (cd "$package" && npm pack --silent "$package" >/dev/null 2>&1 && tar xzf ./*.tgz) || { echo "NOT FETCHED: $package"; rm -rf "$package"; continue; }; }
	put "$package" "${package%@*}" office 1 '*.xlsx' '*.docx' '*.pptx' '*.od[tsp]'
done
