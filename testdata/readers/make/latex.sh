#!/bin/sh
# PDFs by pdfTeX and XeTeX: ligatures, hyphenation, columns, mathematics, tables, footnotes, umlauts, other scripts, many pages.
set -eu
work=$1 out=$2
prose() { awk -v n="$1" -v seed="$2" -f prose.awk; }

tex() { # program name
	(cd "$work" && "$1" -interaction=batchmode "$2.tex" >/dev/null && "$1" -interaction=batchmode "$2.tex" >/dev/null)
	cp "$work/$2.pdf" "$out/pdf/$2.pdf"
}

cat >"$work/latex_article.tex" <<T
\\documentclass{article}
\\pdfinfoomitdate=1 \\pdftrailerid{}
\\begin{document}
\\title{On the Efficient Filing of Affairs}\\author{A. Writer \\and B. Reader}\\date{}\\maketitle
\\tableofcontents
\\section{First difficulties}
$(prose 30 1)\\footnote{A note at the foot: the official affiliation is difficult.}
\\subsection{A list}
\\begin{itemize}\\item one fine flag \\item two \`\`quoted'' words --- and dashes \\item $(prose 2 2)\\end{itemize}
\\section{Measures}
Let \$x^2 + y_1 = \\frac{a}{b}\$ hold. Then \$\$\\sum_{i=0}^{n} i = \\frac{n(n+1)}{2}.\$\$
\\begin{tabular}{lrr} name & first & second \\\\ alpha & 10 & 2.50 \\\\ beta & 200 & 13.75 \\\\ gamma & 3000 & 0.01 \\end{tabular}

$(prose 60 3)
\\end{document}
T
tex pdflatex latex_article

cat >"$work/latex_columns.tex" <<T
\\documentclass[twocolumn,10pt]{article}
\\usepackage{lmodern}\\usepackage[T1]{fontenc}
\\pdfinfoomitdate=1 \\pdftrailerid{}
\\begin{document}
\\section{Two columns}
$(prose 90 4)
\\section{And more}
$(prose 90 5)
\\end{document}
T
tex pdflatex latex_columns

cat >"$work/latex_german.tex" <<T
\\documentclass{article}
\\usepackage[utf8]{inputenc}\\usepackage[T1]{fontenc}\\usepackage{lmodern}\\usepackage[ngerman]{babel}
\\pdfinfoomitdate=1 \\pdftrailerid{}
\\begin{document}
\\section{Über Größe und Maß}
Die Straßenbahn fährt täglich über die alte Brücke, während die Fußgänger draußen im Regen stehen. Schöne Grüße aus Köln,
schrieb er, und fügte hinzu: \\glqq Öffnen Sie bitte nicht vor Weihnachten.\\grqq{} Der Donaudampfschifffahrtsgesellschaftskapitän
hörte aufmerksam zu. Außerdem kosteten die Äpfel 3,50~\\texteuro{} je Kilogramm.

Dès l'été, le garçon naïf goûta les crêpes; où était sa sœur? El niño pequeño comió piñones. Ångström, Łódź, čeština.
\\end{document}
T
tex pdflatex latex_german

cat >"$work/xelatex_scripts.tex" <<T
\\documentclass{article}
\\usepackage{fontspec}
\\setmainfont{DejaVu Sans}
\\newfontfamily\\japanese{IPAPGothic}
\\special{pdf:trailerid [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]}
\\begin{document}
Съешь же ещё этих мягких французских булок, да выпей чаю. Широкая электрификация южных губерний даст мощный толчок.

Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Η γρήγορη αλεπού πηδά πάνω από το σκυλί.

{\\japanese いろはにほへと ちりぬるを わかよたれそ 日本語の文書を読む}

$(prose 20 6)
\\end{document}
T
tex xelatex xelatex_scripts

{
	printf '%s\n' '\documentclass{article}\pdfinfoomitdate=1 \pdftrailerid{}\begin{document}'
	i=1
	while [ "$i" -le 100 ]; do
		printf '\\section*{Page mark %s}\n%s\n\\newpage\n' "$i" "$(prose 20 $((i + 100)))"
		i=$((i + 1))
	done
	printf '%s\n' '\end{document}'
} >"$work/latex_100pages.tex"
tex pdflatex latex_100pages
