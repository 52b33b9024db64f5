#!/bin/sh
# The same document as other tools store it: encrypted in seven ways, linearised, with object streams, without; turned; several joined.
set -eu
work=$1 out=$2
q() { qpdf --deterministic-id "$@"; }
e() { qpdf --allow-weak-crypto --static-id --static-aes-iv "$@" 2>/dev/null || test $? -eq 3; }
src=$out/pdf/latex_german.pdf
e "$src" --encrypt "" owner 40 -- "$out/pdf/qpdf_rc4_40.pdf"
e "$src" --encrypt "" owner 128 --use-aes=y -- "$out/pdf/qpdf_aes_128.pdf"
e "$src" --encrypt "" owner 256 -- "$out/pdf/qpdf_aes_256.pdf"
e "$src" --encrypt secret owner 256 -- "$out/pdf/qpdf_password.pdf"
q --linearize "$src" "$out/pdf/qpdf_linear.pdf"
q --object-streams=generate --recompress-flate --compression-level=9 "$src" "$out/pdf/qpdf_objstm.pdf"
q --qdf --object-streams=disable "$out/pdf/gs_standard.pdf" "$out/pdf/qpdf_plain.pdf"
q --rotate=+90 "$src" "$out/pdf/qpdf_rotated.pdf"
plain=$out/pdf/qpdf_plain.pdf
e "$plain" --encrypt "" owner 128 --use-aes=n -- "$out/pdf/qpdf_rc4_128.pdf"
e "$plain" --object-streams=generate --encrypt "" owner 128 --use-aes=y --cleartext-metadata -- "$out/pdf/qpdf_aes_128_objstm.pdf"
e "$plain" --object-streams=generate --encrypt "" owner 256 --force-R5 -- "$out/pdf/qpdf_aes_256_r5.pdf"
q --empty --pages "$out/pdf/gs_standard.pdf" "$out/pdf/scan.pdf" "$src" -- "$out/pdf/qpdf_joined.pdf"
