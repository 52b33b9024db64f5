#!/bin/sh
# A web page printed by Chromium: subset fonts, right-to-left text, a table, two columns.
set -eu
work=$1 out=$2
prose() { awk -v n="$1" -v seed="$2" -f prose.awk; }
cat >"$work/page.html" <<T
<!DOCTYPE html><html><head><meta charset="utf-8"><title>Page</title>
<style>body{font-family:'DejaVu Sans',IPAPGothic,Amiri,sans-serif} .two{columns:2}</style></head><body>
<h1>A page as printed</h1><p>$(prose 12 7)</p>
<table border=1>$(i=1; while [ $i -le 12 ]; do echo "<tr><td>row$i</td><td>$((i * 37))</td><td>cell number $i</td></tr>"; i=$((i + 1)); done)</table>
<p>Ελληνικά και Русский текст. 日本語の文書。</p>
<div class=two><p>$(prose 40 8)</p></div>
<pre>func main() {
	fmt.Println("code &amp; more")
}</pre>
</body></html>
T
chromium --headless --no-sandbox --disable-gpu --no-pdf-header-footer "--user-data-dir=$work/chromium" \
	"--print-to-pdf=$out/pdf/chromium_page.pdf" "file://$work/page.html" >/dev/null 2>&1
test -s "$out/pdf/chromium_page.pdf"
