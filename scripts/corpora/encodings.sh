#!/bin/sh
# encodings.sh DIR puts some 620 texts in old encodings into DIR/encodings, each with its text in UTF-8 beside it (NAME.utf8). The texts are
# those of Debian's packages: the installation guide, manual pages, fortunes and the messages of GLib and GTK. It takes apt-get, dpkg and python3.
# The same packages give the same files. DIR/encodings/LIST has a line for each: the file, its set, its language.
set -eu
out=$1/encodings
[ ! -e "$out/LIST" ] || exit 0
got=$(mktemp -d)
trap 'rm -rf "$got"' EXIT
cd "$got"
if ! apt-get download -q libglib2.0-data libgtk-3-common installation-guide-amd64 fortunes-bg fortunes-cs fortunes-de fortunes-es fortunes-ga fortunes-it \
	fortunes-pl fortunes-ru fortunes-eo manpages-cs manpages-da manpages-de manpages-el manpages-es manpages-fi manpages-fr manpages-hu \
	manpages-id manpages-it manpages-ja manpages-mk manpages-nb manpages-nl manpages-pl manpages-pt-br manpages-ro manpages-ru \
	manpages-sr manpages-sv manpages-tr manpages-uk manpages-vi manpages-zh >log 2>&1; then
	tail -3 log
	echo "NOT MADE, its tables are skipped: $out"
	exit 0
fi
for each in *.deb; do dpkg -x "$each" x; done
mkdir -p "$out"
python3 - "$got/x" "$out" <<'PY'
import glob, gettext, gzip, html, os, re, sys, unicodedata, zlib
root, out = sys.argv[1:]

def guide(lang):
    for f in sorted(glob.glob(f'{root}/usr/share/doc/installation-guide-amd64/{lang}/ch0[1-6]*.html'))[:40]:
        text = open(f, encoding='utf-8', errors='ignore').read()
        for p in re.findall(r'<p>(.*?)</p>', text, re.S):
            yield ' '.join(html.unescape(re.sub(r'<[^>]*>', '', p)).split())

def man(lang):
    for f in sorted(glob.glob(f'{root}/usr/share/man/{lang}/man*/*.gz'))[:60]:
        for l in gzip.open(f, 'rt', encoding='utf-8', errors='ignore'):
            if l[0] not in ".'" and len(l) > 30:
                yield re.sub(r'\\f.|\\&|\\|\s+', lambda m: ' ' if m[0].isspace() else '', l).strip()

def fortunes(lang):
    for f in sorted(glob.glob(f'{root}/usr/share/games/fortunes/{lang}') + glob.glob(f'{root}/usr/share/games/fortunes/{lang}/*')):
        if os.path.isdir(f) or f.endswith('.dat'):
            continue
        for l in open(f, encoding='utf-8', errors='ignore'):
            if len(l) > 30:
                yield l.strip()

def messages(lang):
    for f in sorted(glob.glob(f'{root}/usr/share/locale/{lang}/LC_MESSAGES/g*0.mo')):
        for k, v in sorted(gettext.GNUTranslations(open(f, 'rb'))._catalog.items(), key=str):
            if v != k and '%' not in v and len(v) > 12:
                yield ' '.join(v.replace('_', '').split())

cache = {}
def sources(lang):
    """The sentences of a language, without ASCII alone, from each source that has enough."""
    if lang not in cache:
        short = lang.split('_')[0]
        every = [sorted(set(f(l)), key=lambda s: zlib.crc32(s.encode())) for f, l in
                 ((guide, lang), (man, lang), (fortunes, short), (messages, lang))]
        every = [[s for s in one if '\ufffd' not in s and 'Ã' not in s and any(c > '\x7f' for c in s)] for one in every]
        cache[lang] = [one for one in every if sum(map(len, one)) > 1200] or [max(every, key=len)]
        assert cache[lang][0], lang
    return cache[lang]

def encode(text, enc):
    if enc == 'cp1258': # tones are marks of their own there
        text = ''.join(c if ord(c) < 128 else tone(c) for c in text)
    if enc in ('utf-32', 'utf-16'):
        return text.encode(enc)
    return text.encode(enc)

def tone(c):
    try:
        c.encode('cp1258')
        return c
    except UnicodeEncodeError:
        d = unicodedata.normalize('NFD', c)
        marks = [m for m in d if m in '\u0300\u0301\u0303\u0309\u0323']
        return unicodedata.normalize('NFC', ''.join(m for m in d if m not in marks)) + ''.join(marks)

def fits(s, enc):
    try:
        encode(s, enc)
        return True
    except UnicodeEncodeError:
        return False

def sentences(lang, enc, which):
    have = sources(lang)
    one = [s for s in have[which % len(have)] if fits(s, enc)]
    if sum(map(len, one)) < 600: # typographic quotes and dashes that the encoding does not have
        plain = str.maketrans('„“”‘’‚–—…→•\u2010\u2011', '"""\'\'\'--.>*--')
        one = [t for s in have[which % len(have)] for t in [s.translate(plain)] if fits(t, enc) and any(c > '\x7f' for c in t)]
    return one

listed = open(out + '/LIST.new', 'w')
def put(kind, name, lang, raw, text):
    open(f'{out}/{name}', 'wb').write(raw)
    open(f'{out}/{name}.utf8', 'w', encoding='utf-8', newline='').write(text)
    print(name, kind, lang, file=listed)

def upto(lines, size):
    got = ''
    for l in lines:
        if got and len(got) + len(l) > size:
            break
        got += l + '\n'
    return got

def strange(words):
    return sum(c > '\x7f' for c in words)

def two(lines):
    best = ''
    for l in lines[:40]:
        words = re.findall(r'[^\W\d_]+', l)
        if len(words) < 4:
            words = [l[i:i + 3] for i in range(0, len(l), 3)] # no blanks between words
        for a, b in zip(words, words[1:]):
            if strange(a) and strange(b) and len(a) + len(b) < 24:
                return a + ' ' + b + '\n'
            if strange(a + b) > strange(best):
                best = a + ' ' + b + '\n'
    return best

code = '''#include <stdio.h>

static int limit = %d;

/* %s */
int next_%d(int *values, int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		if (values[i] > limit) /* %s */
			continue;
		sum += values[i];
	}
	return sum;
}
'''

def as_code(lines):
    got = ''
    for i in range(3):
        a, b = lines[2 * i % len(lines)], lines[(2 * i + 1) % len(lines)]
        got += code % (i, a[:60], i, b[:40])
    return got

def as_csv(lines):
    words = [w for l in lines for w in re.findall(r'[^\W\d_]+', l) if strange(w)][:12]
    return 'id;name;amount\n' + ''.join(f'{1000 + i};{w[:20]};{i * 37 % 101},50\n' for i, w in enumerate(words))

def pairs(text):
    for part in text.split():
        lang, encs = part.split(':')
        for enc in encs.split(','):
            yield lang, enc

classic = list(pairs('''de:cp1252,iso8859_1,iso8859_15,mac_roman,cp850,cp437 fr:cp1252,iso8859_1,mac_roman,cp850 es:cp1252,iso8859_1,cp437
 it:iso8859_1 pt_BR:cp1252 sv:iso8859_1,cp850 fi:iso8859_1 pl:cp1250,iso8859_2,cp852 cs:cp1250,iso8859_2,cp852 hu:cp1250,iso8859_2 ro:cp1250,iso8859_2,iso8859_16
 sk:cp1250,iso8859_2 sl:cp1250,iso8859_2 ru:cp1251,koi8_r,iso8859_5,cp866,mac_cyrillic uk:cp1251,koi8_u bg:cp1251 el:cp1253,iso8859_7 tr:cp1254,iso8859_9
 he:cp1255,iso8859_8 ar:cp1256,iso8859_6 fa:cp1256 lt:cp1257,iso8859_13 lv:cp1257,iso8859_13 vi:cp1258 eo:iso8859_3 th:tis_620
 ja:shift_jis,euc_jp,iso2022_jp,utf-16-le,utf-16,utf-32-be ko:euc_kr,cp949,utf-16-be zh_CN:gb2312,gb18030,hz,utf-16-le zh_TW:big5 en:utf-8 de:utf-8,utf-8-sig,utf-16,utf-16-le,utf-32-le'''))
for lang, enc in classic:
    if lang == 'en':
        continue
    for i, kind in enumerate(('long', 'sentence', 'words', 'code', 'csv')):
        lines = sentences(lang, enc, i)
        assert lines, (lang, enc, i)
        text = {'long': lambda: upto(lines, 2000), 'sentence': lambda: min(lines[:5], key=lambda s: abs(len(s) - 80)) + '\n',
                'words': lambda: two(lines), 'code': lambda: as_code(lines), 'csv': lambda: as_csv(lines)}[kind]()
        if not strange(text):
            continue
        put('classic-' + kind, f'{lang}.{enc}.{kind}', lang, encode(text, enc), text)

licence = ('This program is free software; you can redistribute it and/or modify it under the terms of the license.\n'
           'It is distributed in the hope that it will be useful, but without any warranty; see the license for details.\n')
for i, (lang, enc) in enumerate(pairs('''pl:cp1250,iso8859_2 cs:cp1250,iso8859_2 hu:cp1250,iso8859_2 sl:iso8859_2 hr:cp1250 ro:iso8859_2 tr:cp1254,iso8859_9
 uk:koi8_u,cp1251 ru:cp866,koi8_r de:mac_roman,cp1252 fr:mac_roman el:cp1253 lt:cp1257 sk:cp1250''')):
    for kind, size, before in (('after2k', 300, licence * 9), ('after2kc', 700, licence * 9), ('after80k', 700, licence * 370)):
        text = before + upto(['// ' + l for l in sentences(lang, enc, i)], size)
        put('ascii-' + kind[5:], f'{lang}.{enc}.{kind}', lang, encode(text, enc), text)

for lang, enc, said in (('hu', 'iso8859_2', 'ISO-8859-2'), ('cs', 'cp1250', 'windows-1250'), ('ru', 'koi8_r', 'KOI8-R'), ('uk', 'cp1251', 'cp1251'),
                        ('lv', 'cp1257', 'windows-1257'), ('tr', 'iso8859_9', 'iso-8859-9'), ('fr', 'iso8859_15', 'latin-9'), ('ja', 'euc_jp', 'euc-jp')):
    l = sentences(lang, enc, 3)
    a, b = min(l[:8], key=len), max(l[:8], key=len)
    tex = {'ISO-8859-2': 'latin2', 'windows-1250': 'cp1250', 'KOI8-R': 'koi8-r', 'windows-1257': 'cp1257', 'iso-8859-9': 'latin5', 'latin-9': 'latin9'}.get(said, said)
    for form, text in (('xml', f'<?xml version="1.0" encoding="{said}"?>\n<doc><title>{a}</title></doc>\n'),
                       ('meta', f'<!DOCTYPE html>\n<html><head><meta charset="{said}">\n<title>{a}</title></head><body><p>{b}</p></body></html>\n'),
                       ('http', f'<html>\n<head>\n<meta http-equiv="Content-Type" content="text/html; charset={said}">\n<title>{a}</title>\n'),
                       ('py', f'#!/usr/bin/python\n# -*- coding: {said} -*-\nname = "{a}"\n'),
                       ('po', f'msgid ""\nmsgstr ""\n"Language: {lang}\\n"\n"Content-Type: text/plain; charset={said}\\n"\n\nmsgid "x"\nmsgstr "{a}"\n'),
                       ('css', f'@charset "{said}";\n.x:before {{ content: "{a}" }}\n'),
                       ('tex', f'\\documentclass{{article}}\n\\usepackage[{tex}]{{inputenc}}\n\\begin{{document}}\n{a}\n'),
                       ('rb', f'# encoding: {said}\nputs "{a}"\n')):
        put('declared', f'{lang}.{enc}.{form}', lang, encode(text, enc), text)

further = pairs('''da:cp1252,iso8859_1,cp850 nb:iso8859_1,mac_roman nl:cp1252 is:iso8859_1,cp1252 ca:cp1252,iso8859_15 fr:iso8859_15,cp437 it:mac_roman,cp850 pt_BR:mac_roman,cp850
 es:mac_roman,cp850 fi:iso8859_15,cp850 et:cp1257,iso8859_15 hr:cp1250,iso8859_2,cp852 sl:cp852 hu:cp852 ro:cp852 sk:cp852 sr:cp1251,iso8859_5 mk:cp1251,iso8859_5
 bg:iso8859_5,koi8_r,cp866 be:cp1251,iso8859_5 uk:cp866,iso8859_5,mac_cyrillic ru:cp855 fa:cp1256 ga:iso8859_14 eu:cp1252 gl:iso8859_1 sq:cp1250 cy:iso8859_14 sr@latin:cp1250
 zh_TW:big5hkscs zh_CN:gbk''')
for i, (lang, enc) in enumerate(further):
    for kind in ('long', 'sentence'):
        l = sentences(lang, enc, i + len(kind))
        text = upto(l, 1500) if kind == 'long' else min(l[:5], key=lambda s: abs(len(s) - 90)) + '\n'
        put('further', f'{lang}.{enc}.f{kind}', lang, encode(text, enc), text)

odd = {}
for name, enc, text in (('sjis1', 'shift_jis', '山田\n'), ('sjis2', 'shift_jis', '東京 大阪\n'), ('euc1', 'euc_jp', '日本\n'), ('gbk1', 'gbk', '王伟\n'), ('gbk2', 'gbk', '中文\n'), ('gbk3', 'gbk', '北京,上海\n'),
                        ('big1', 'big5', '台灣\n'), ('big2', 'big5', '中文\n'), ('kr1', 'euc_kr', '한국\n'), ('kr2', 'euc_kr', '서울 부산\n'), ('kana', 'shift_jis', 'テスト\n'), ('hira', 'euc_jp', 'ありがとう\n'),
                        ('u32ja', 'utf-32-le', '日本語のテキスト\n二行目\n'), ('u32ko', 'utf-32-be', '한국어 텍스트\n'), ('u16zh', 'utf-16-le', '中文文本\n第二行文字在此处继续\n'), ('u16ru', 'utf-16-be', 'Привет, мир\n'),
                        ('euro', 'cp1252', 'Preis: 15 €\n'), ('euro15', 'iso8859_15', 'Prix du café : 15 €, thé : 12 €\n'), ('smart', 'cp1252', 'It’s “quoted” – here…\n'), ('smartmac', 'mac_roman', 'Don’t say “maybe” — say when…\n'),
                        ('deg', 'iso8859_1', 'Temperature: 21 °C, 5 µm\n'), ('umlaut', 'cp1252', 'Müller\n'), ('cafe', 'iso8859_1', 'café\n'), ('ostr', 'cp1251', 'Да\n'), ('jakarta', 'cp1251', 'Москва\n'),
                        ('koi', 'koi8_r', 'Москва\n'), ('dos', 'cp866', 'Москва\n')):
    put('odd', name + '.odd', 'xx', encode(text, enc), text)
log = ''.join(f'2026-01-{i:02} INFO Größe geprüft für Übung {i}\n' for i in range(1, 20))
for name, bad in (('few', b'user M\xfcller logged in\n'), ('more', b'caf\xe9 \xe0 la carte\nd\xe9j\xe0 vu\n')):
    raw = log.encode()[:400 if name == 'few' else 900].rsplit(b'\n', 1)[0] + b'\n' + bad + b'the end\n'
    put('odd', f'mixed-{name}.odd', 'xx', raw, raw.decode('utf-8', 'replace'))
one = ('plain line\n' * 50 + 'two wörds\n').encode() + b'and one na\xefve\n'
put('odd', 'mixed-one.odd', 'xx', one, one.decode('utf-8', 'replace'))
cut = 'Größe und Übung'.encode()[:-1]
cut = ('schöne Grüße, '.encode() * 3 + 'Ü'.encode()[:1])
put('odd', 'cut.odd', 'xx', cut, cut.decode('utf-8', 'replace'))
listed.close()
os.rename(out + '/LIST.new', out + '/LIST')
PY
