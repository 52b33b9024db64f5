package text

import (
	"bytes"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
)

// sampleBytes of a text are looked at.
const sampleBytes = 64 << 10

// MostlyUTF8 is true for UTF-8 with few foreign bytes: at most one for three multi-byte characters.
func MostlyUTF8(b []byte) bool {
	chars, strange := 0, 0
	for len(b) > 0 {
		if b[0] < utf8.RuneSelf {
			b = b[1:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			strange++
		} else {
			chars++
		}
		b = b[n:]
	}
	return chars >= 3*strange
}

// Guess names the charset of content, which is not UTF-8, in lower case and by a name that Lookup
// knows. It asks the statistics about lines beyond ASCII; the first answer that explains the bytes
// wins.
func Guess(content []byte) string {
	sample := strangeLines(content, sampleBytes)
	answers := ask(sample)
	top := ""
	if len(answers) > 0 {
		top = usual(answers[0].Encoding)
	}
	// A likelier encoding beats the detector's answer. The family of GB 18030 is decided below.
	if likely := likeliest(sample, top); likely != "gb18030" && likely != top {
		if e := decoder(likely); e != nil && explains(e, sample) {
			return e.Name
		}
	}
	for i, r := range answers {
		if i > 0 && r.Confidence < 0.3 {
			break
		}
		name := strings.ToLower(r.Encoding)
		switch name {
		case "gb2312", "gb18030":
			// Big5 is taken for it, but half of its second bytes are where GB 2312 has none.
			if lowTrails(sample) && explains(Lookup("big5"), sample) {
				return "big5"
			}
			name = "gb18030" // it reads all of its family, and can hold every character
		case "iso-8859-1":
			// C1 controls do not occur in text; cp1252 has letters and quotes there.
			if share(content, 0x80, 0xa0) > 0 {
				name = "windows-1252"
			}
		case "maccyrillic", "x-mac-cyrillic":
			// Small letters are in the same places; capitals are not.
			name = "x-mac-cyrillic"
			if c1, high := share(sample, 0x80, 0xa0), share(sample, 0xc0, 0xdf); c1 <= high {
				name = "windows-1251"
			}
		}
		if e := decoder(name); e != nil && explains(e, sample) {
			return e.Name
		}
	}
	// Nothing convinces. A few strange bytes in ASCII are Western text until somebody says otherwise.
	if share(content, 0x80, 0xa0) > 0 {
		return "windows-1252"
	}
	return "iso-8859-1"
}

// ask asks the detector. It is not ours and sees whatever a tree holds; a panic is no answer.
func ask(sample []byte) (all []chardet.Result) {
	defer func() {
		if recover() != nil {
			all = nil
		}
	}()
	return chardet.DetectAll(sample)
}

// decoder finds an encoding of bytes by the name that a detector gives; nil for unknown names and for
// those that are not guessed.
func decoder(name string) *Encoding {
	e := Lookup(name)
	if e == nil || e == UTF8 || e.Unit > 1 || e.Stateful() {
		return nil
	}
	return e
}

// lowTrails is true where more than one in seven two-byte characters ends in a byte below 0xa1.
func lowTrails(b []byte) bool {
	low, all := 0, 0
	for i := 0; i+1 < len(b); i++ {
		if b[i] > 0x80 {
			i++
			all++
			if b[i] < 0xa1 {
				low++
			}
		}
	}
	return low*7 > all
}

// share counts bytes from lo up to hi.
func share(b []byte, lo, hi byte) (n int) {
	for _, c := range b {
		if lo <= c && c < hi {
			n++
		}
	}
	return n
}

// explains allows one bad byte in fifty: damage is more frequent than exotic charsets.
func explains(e *Encoding, sample []byte) bool {
	text, err := e.Codec.NewDecoder().Bytes(sample)
	return err == nil && bytes.Count(text, []byte("\ufffd"))*50 <= len(sample)-share(sample, 0, utf8.RuneSelf)
}

// strangeLines collects whole lines with bytes above ASCII, wherever they are, up to max bytes.
func strangeLines(content []byte, max int) []byte {
	out := make([]byte, 0, min(len(content), max))
	for len(content) > 0 && len(out) < max {
		line := content
		if i := bytes.IndexByte(content, '\n'); i >= 0 {
			line = content[:i+1]
		}
		content = content[len(line):]
		if !isASCII(line) {
			out = append(out, line[:min(len(line), max-len(out))]...)
		}
	}
	return out
}

// usual is our name for an encoding that the detector calls by another. GB 18030 reads all of its family.
func usual(name string) string {
	switch e := Lookup(name); {
	case e == nil:
		return strings.ToLower(name)
	case e.Name == "gbk", e.Name == "hz-gb-2312":
		return "gb18030"
	default:
		return e.Name
	}
}

// The detector knows CJK well and single-byte encodings badly: Polish in windows-1250 is Western
// text to it. The tongues weigh its answer against others: how likely is the reading under each
// encoding, by the letters beyond ASCII, in the language that they fit best. The letters are ordered
// by their frequency as commonly published; the likelihoods are rough.

// tongue is a language: its letters beyond ASCII, frequent ones first, and its encodings.
type tongue struct {
	letters   string
	encodings string
}

const (
	western  = "windows-1252 iso-8859-1 iso-8859-15 macintosh ibm850"
	central  = "windows-1250 iso-8859-2 ibm852"
	cyrillic = "windows-1251 koi8-r koi8-u ibm866 iso-8859-5 x-mac-cyrillic"
)

var tongues = [...]tongue{
	{"éèàêçùôîâûëïœÿæ", western},
	{"üäöß", western + " windows-1250 iso-8859-2"},
	{"óáíñéúü¿¡", western},
	{"éáóíèàäöüçñêßúåãøâôîœæïëûùõòì¿¡ýðþ", western}, // several at once
	{"ãçáéóíêõâúàôü", western},
	{"èàòùéìîó", western},
	{"äåöéü", western},
	{"øåæéò", western},
	{"áðíóúþöéýæ", western},
	{"áéíóěščřžýůłęąśżćńźúőűöüďťňäôľâăîşţđ", central}, // several at once
	{"łęóąśżćńź", central + " windows-1257 iso-8859-13"},
	{"áíéěščřžýůúďťňó", central},
	{"áíéčšžýťúľôňďóäĺŕ", central},
	{"áéöóőíüúű", central},
	{"ăîâşţșț", central + " iso-8859-16"},
	{"čšžćđ", central},
	{"ıüşöçğİâî", "windows-1254 iso-8859-9"},
	{"ėšųžįūąčę", "windows-1257 iso-8859-13"},
	{"āīēšūņļķģčž", "windows-1257 iso-8859-13"},
	{"äõüöšž", "windows-1257 iso-8859-15 windows-1252"},
	{"оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё", cyrillic},
	{"оаниітврескулдмпзяьбгчйхцжїюшєщфґ", "windows-1251 koi8-u iso-8859-5 x-mac-cyrillic"},
	{"αοιτεςνσηρκπυμλίωάδγόέθήύχφώβξζψϊϋΐΰ", "windows-1253 iso-8859-7"},
	{"יהולארתבמשםנכעדקחפצטזןגךסץף", "windows-1255 iso-8859-8"},
	{"اليمنورتهبعدسفكقحةأجشصخىذطضإئثزغظءؤآ،؟؛ًٌٍَُِّْ", "windows-1256 iso-8859-6"},
	{"านรอกเงมย่ล้วัดทสตีะปิบค์หแจพุชู็ืขใไโผซณถึำภๆธฟศษฐ", "windows-874"},
}

// common is punctuation beyond ASCII that any language may hold.
const common = "«»„“”‘’‚–—…€°§№©®·•\u00a0"

const (
	unlikely  = -11.0 // log of the likelihood of a character that no text of the language has
	noise     = -8.7  // a mean below this is no text; ideographs are at -8
	preferred = 2.0   // the weight of the detector's own answer
)

// likeliest names the legacy encoding under which the bytes are the likeliest text. answer is the answer of
// a detector, "" for none; it decides where several fit. The result is a name as in the
// IANA registry in small letters, "" when nothing fits. UTF-8 and UTF-16 must be told before.
func likeliest(b []byte, answer string) string {
	answer = usual(answer)
	// So much is enough, and this runs often. A character cut at the end must not count.
	if len(b) > 1<<10 {
		b = b[:1<<10]
		if i := bytes.LastIndexByte(b, '\n'); i > len(b)/2 {
			b = b[:i]
		}
	}
	best, bestScore := "", math.Inf(-1)
	high := len(b) - share(b, 0, utf8.RuneSelf)
	try := func(name string, letters string, bonus float64) {
		text, err := Lookup(name).Codec.NewDecoder().Bytes(b)
		if err != nil {
			return
		}
		score, chars, bad := likelihood(string(text), letters)
		if bad*50 > chars || score < float64(chars)*noise {
			return // not text in this encoding
		}
		if score += bonus; score > bestScore {
			best, bestScore = name, score
		}
	}
	for _, l := range tongues {
		for _, name := range strings.Fields(l.encodings) {
			bonus := 0.0
			if name == answer {
				bonus = preferred
			}
			try(name, l.letters, bonus)
		}
	}
	for _, name := range []string{"shift_jis", "euc-jp", "gb18030", "big5", "euc-kr"} {
		bonus := -preferred
		if name == answer {
			bonus = preferred + float64(high)/2 // for these the detector counts characters, which we do not
		}
		try(name, "", bonus)
	}
	return best
}

// likelihood sums the logs over controls and characters beyond ASCII. bad: bytes that are no character.
func likelihood(text, letters string) (sum float64, chars, bad int) {
	ranks := make(map[rune]float64, utf8.RuneCountInString(letters))
	for _, r := range letters {
		ranks[r] = -math.Log(float64(len(ranks) + 4))
	}
	before := ' '
	for i, r := range text {
		was := before
		before = r
		switch {
		case r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f', r == 0x7f:
			bad++
		case r < utf8.RuneSelf:
			continue
		case r == utf8.RuneError, r < 0xa0:
			bad++
		}
		chars++
		lower := unicode.ToLower(r)
		p, known := ranks[r]
		mixed := known && !unicode.Is(unicode.Latin, r) && unicode.IsLetter(r) && (ascii(was) || ascii(next(text[i+utf8.RuneLen(r):])))
		switch {
		case mixed:
			p = unlikely // no word is in two scripts
		case known:
		case lower != r && ranks[lower] != 0:
			p = ranks[lower] - 3
			if unicode.IsLower(was) {
				p = unlikely // a capital within a word
			}
		case strings.ContainsRune(common, r):
			p = -4.5
			if unicode.IsLetter(was) && r != '’' && r != '…' && r != '\u00a0' && r != '”' && r != '»' && r != '“' && r != '·' {
				p = -7
			}
		default:
			p = ideographic(r)
		}
		sum += p
	}
	return sum, chars, bad
}

func ascii(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }

// next is the character that follows; 0 at the end.
func next(s string) rune {
	if s == "" {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// ideographic is for the scripts with too many characters for a list.
func ideographic(r rune) float64 {
	switch {
	case r >= 0x3041 && r <= 0x3096: // Hiragana
		return -4
	case r >= 0x30a1 && r <= 0x30fc: // Katakana
		return -6
	case strings.ContainsRune("、。「」，：；？！（）“”‘’《》・", r):
		return -3.5
	case r >= 0x4e00 && r <= 0x9fff:
		return -8
	case r >= 0xac00 && r <= 0xd7a3:
		return -6.5
	}
	return unlikely
}
