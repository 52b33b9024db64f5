#!/bin/sh
# Office documents and their PDFs by LibreOffice. The sources are flat OpenDocument and HTML, so that they can be read here.
set -eu
work=$1 out=$2
export HOME="$work"
soffice() { command soffice --headless --norestore "-env:UserInstallation=file://$work/office" "$@" >/dev/null 2>&1; }

cat >"$work/letter.html" <<'T'
<!DOCTYPE html><html><head><meta charset="utf-8"><title>Letter</title></head><body>
<h1>Quarterly report</h1>
<p>The first paragraph has <b>bold</b> and <i>italic</i> words, an umlaut in Größe, and a <a href="https://example.org/x">link</a>.</p>
<h2>Figures of the year</h2>
<table border="1"><tr><th>Region</th><th>Units</th><th>Price</th></tr><tr><td>North</td><td>120</td><td>3.50</td></tr><tr><td>South | East</td><td>75</td><td>4.25</td></tr></table>
<ul><li>first point</li><li>second point<ul><li>a point below</li></ul></li></ul>
<ol><li>one</li><li>two</li></ol>
<p>Привет, мир. 日本語も読める。 The last paragraph.</p>
</body></html>
T
cat >"$work/sheet.fods" <<'T'
<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2" office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.spreadsheet">
<office:body><office:spreadsheet>
<table:table table:name="Stock">
<table:table-row><table:table-cell office:value-type="string"><text:p>Item</text:p></table:table-cell><table:table-cell office:value-type="string"><text:p>Count</text:p></table:table-cell><table:table-cell office:value-type="string"><text:p>Since</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell office:value-type="string"><text:p>Lantern</text:p></table:table-cell><table:table-cell office:value-type="float" office:value="12"><text:p>12</text:p></table:table-cell><table:table-cell office:value-type="date" office:date-value="2024-03-01"><text:p>2024-03-01</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell office:value-type="string"><text:p>Copper wire</text:p></table:table-cell><table:table-cell office:value-type="float" office:value="2.5"><text:p>2.5</text:p></table:table-cell><table:table-cell/></table:table-row>
<table:table-row><table:table-cell office:value-type="string"><text:p>Sum</text:p></table:table-cell><table:table-cell table:formula="of:=SUM([.B2:.B3])" office:value-type="float" office:value="14.5"><text:p>14.5</text:p></table:table-cell></table:table-row>
</table:table>
<table:table table:name="Second sheet"><table:table-row><table:table-cell office:value-type="boolean" office:boolean-value="true"><text:p>TRUE</text:p></table:table-cell><table:table-cell office:value-type="string"><text:p>Größe</text:p></table:table-cell></table:table-row></table:table>
</office:spreadsheet></office:body></office:document>
T
cat >"$work/talk.fodp" <<'T'
<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0" office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.presentation">
<office:body><office:presentation>
<draw:page draw:name="one"><draw:frame svg:x="2cm" svg:y="1cm" svg:width="20cm" svg:height="3cm"><draw:text-box><text:p>Opening the harbour</text:p></draw:text-box></draw:frame>
<draw:frame svg:x="2cm" svg:y="5cm" svg:width="20cm" svg:height="8cm"><draw:text-box><text:p>The first slide speaks of ships.</text:p><text:p>A second line follows.</text:p></draw:text-box></draw:frame>
<presentation:notes><draw:frame svg:x="2cm" svg:y="14cm" svg:width="16cm" svg:height="8cm" presentation:class="notes"><draw:text-box><text:p>Speak slowly here.</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>
<draw:page draw:name="two"><draw:frame svg:x="2cm" svg:y="1cm" svg:width="20cm" svg:height="3cm"><draw:text-box><text:p>Closing the ledger</text:p></draw:text-box></draw:frame></draw:page>
</office:presentation></office:body></office:document>
T
cd "$work"
soffice "--infilter=HTML (StarWriter)" --convert-to odt letter.html
soffice --convert-to docx letter.odt
soffice --convert-to epub letter.odt
soffice --convert-to pdf letter.odt
soffice --convert-to ods sheet.fods
soffice --convert-to xlsx sheet.fods
soffice --convert-to pdf sheet.fods
soffice --convert-to odp talk.fodp
soffice --convert-to pptx talk.fodp
soffice --convert-to pdf talk.fodp
for f in letter.odt letter.docx letter.epub sheet.ods sheet.xlsx talk.odp talk.pptx letter.html; do cp "$f" "$out/document/$f"; done
cp letter.pdf "$out/pdf/office_letter.pdf"
cp sheet.pdf "$out/pdf/office_sheet.pdf"
cp talk.pdf "$out/pdf/office_talk.pdf"
