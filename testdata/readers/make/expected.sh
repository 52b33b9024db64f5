#!/bin/sh
# What pdftotext reads in each PDF, so that the comparison needs no pdftotext where it runs.
set -eu
out=$2
for f in "$out"/pdf/*.pdf; do
	# One can't be opened; of the other's slanted and spaced lines pdftotext makes a heap of letters.
	case $f in */qpdf_password.pdf | */gs_odd.pdf) continue ;; esac
	pdftotext -enc UTF-8 "$f" "${f%.pdf}.txt"
done
