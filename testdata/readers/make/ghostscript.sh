#!/bin/sh
# PDFs by Ghostscript: standard fonts from PostScript, a manual page by groff, a page turned by its rotation, a scan without text, a
# scan beside text, an empty page.
set -eu
work=$1 out=$2
im=${IM:-convert-im6.q16}
pdf() { gs -q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=pdfwrite -dAutoRotatePages=/None "-sOutputFile=$1" "$2"; }

cat >"$work/standard.ps" <<'T'
%!PS
/Helvetica findfont 14 scalefont setfont 72 720 moveto (Standard fonts need no widths of their own.) show
/Times-Roman findfont 12 scalefont setfont 72 690 moveto (Times Roman: Wave, Tomato, AVATAR, fluffy files.) show
/Courier findfont 12 scalefont setfont 72 660 moveto (Courier keeps its blanks.) show
72 630 moveto (The last line of the page.) show
showpage
T
pdf "$out/pdf/gs_standard.pdf" "$work/standard.ps"

cat >"$work/odd.ps" <<'T'
%!PS
/Helvetica findfont 14 scalefont setfont 72 720 moveto 3 0 (Spaced out letters stay words.) ashow
gsave 72 560 translate 20 rotate 0 0 moveto (A slanted line.) show grestore
gsave 500 300 translate 90 rotate 0 0 moveto (Up along the margin.) show grestore
72 200 moveto (Bold by drawing twice.) show 72.3 200 moveto (Bold by drawing twice.) show
showpage
T
pdf "$out/pdf/gs_odd.pdf" "$work/odd.ps"

cat >"$work/manual.1" <<'T'
.TH CLOCKWORK 1 "March 2024" "clockwork 2.1" "User Commands"
.SH NAME
clockwork \- wind, set and read a clock
.SH SYNOPSIS
.B clockwork
[\fB\-\-set\fR \fITIME\fR] [\fB\-\-wind\fR] [\fIFILE\fR...]
.SH DESCRIPTION
\fBclockwork\fR reads the time from each \fIFILE\fR, or from standard input when none is given, and winds the spring.
The efficient flag is difficult to find; offices often file it under \(lqaffairs\(rq.
.TP
\fB\-s\fR, \fB\-\-set\fR=\fITIME\fR
set the hands to \fITIME\fR, which is written as hours and minutes
.TP
\fB\-w\fR, \fB\-\-wind\fR
wind the spring before anything else
.SH EXIT STATUS
0 when all clocks agree, 1 when they do not.
.SH SEE ALSO
.BR hourglass (1),
.BR sundial (8)
T
groff -man -Tps "$work/manual.1" >"$work/manual.ps"
pdf "$out/pdf/groff_manual.pdf" "$work/manual.ps"

gs -q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=png16m -r100 "-sOutputFile=$work/scan.png" "$work/standard.ps"
"$im" "$work/scan.png" -colorspace Gray -depth 8 -quality 40 "$work/scan.jpg"
cat >"$work/scan.tex" <<'T'
\pdfpagewidth=8.5in \pdfpageheight=11in \pdfhorigin=0pt \pdfvorigin=0pt \pdfinfoomitdate=1 \pdftrailerid{}
\pdfximage width 8.5in{scan.jpg}\shipout\hbox{\pdfrefximage\pdflastximage}\end
T
(cd "$work" && pdftex -interaction=batchmode scan.tex >/dev/null)
cp "$work/scan.pdf" "$out/pdf/scan.pdf"

cat >"$work/empty.ps" <<'T'
%!PS
showpage
/Helvetica findfont 14 scalefont setfont 72 720 moveto (The second page has words.) show showpage
showpage
T
pdf "$out/pdf/gs_empty_pages.pdf" "$work/empty.ps"
