#!/bin/sh
# Makes the corpus of the readers' tests anew: testdata/readers/{pdf,image,refused,document,binary}. The results are committed, so that tests need
# none of the programs. On Debian 12:
#
#	apt-get install --no-install-recommends chromium fonts-dejavu-core fonts-hosny-amiri fonts-ipafont-gothic ghostscript groff \
#		imagemagick libavif-bin libheif-examples libreoffice-calc-nogui libreoffice-impress-nogui libreoffice-writer-nogui libtiff-tools \
#		lmodern poppler-utils qpdf texlive-lang-german texlive-latex-base texlive-latex-recommended texlive-xetex sqlite3 webp zip
#
# Other versions give other bytes with the same words. A script whose program is missing stops; the files made before stay.
set -eu
cd "$(dirname "$0")"
export LC_ALL=C.UTF-8 TZ=UTC SOURCE_DATE_EPOCH=1700000000 FORCE_SOURCE_DATE=1
out=$(cd .. && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out/pdf" "$out/image" "$out/refused" "$out/document" "$out/binary"
for part in latex office chromium ghostscript qpdf images sqlite parquet expected; do
	echo "$part"
	sh "./$part.sh" "$work" "$out"
done
du -sh "$out"
