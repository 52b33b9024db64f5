#!/bin/sh
# What pdftotext reads in each PDF, so that the comparison needs no pdftotext where it runs.
set -eu
out=$2
for f in "$out"/pdf/*.pdf; do
	case $f in */qpdf_password.pdf) continue ;; esac
	pdftotext -enc UTF-8 "$f" "${f%.pdf}.txt"
done
