package pdf

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
)

// set puts characters side by side, each 5 wide and 10 high. In text, | is room without a character, ~ a blank without room that the engine made up,
// and ^ a blank that the next character is set over. rise is how much higher each stands than the one before.
func set(text string, track, rise float32) ([]rune, []box) {
	var runes []rune
	var boxes []box
	x, y := float32(0), float32(0)
	for _, r := range text {
		b := box{x, y + 10, x + 5, y}
		switch r {
		case '|':
			x += 2
			continue
		case '~':
			r, b.right = ' ', x
		case '^':
			r = ' '
		case '\n':
			x, y = 0, y-12
		default:
			x, y = x+5+track, y+rise
		}
		runes, boxes = append(runes, r), append(boxes, b)
	}
	return runes, boxes
}

func TestSpaced(t *testing.T) {
	for _, c := range []struct {
		text, want  string
		track, rise float32
	}{
		{"if|the a b", "if the a b", 0, 0},
		{"Th~e Fo^r", "The For", 0, 0},
		{"end|\n|next~", "end\nnext ", 0, 0},
		{"CHAP|TER", "CHAP TER", 1.5, 0}, // letters apart, as in a heading
		{"A~S L", "A S L", -2, 3},        // a slanting line is left as it is
		{"日|本|語|a", "日本語a", 0, 0},
		{"", "", 0, 0}, {" ", " ", 0, 0}, {"\n\n", "\n\n", 0, 0},
	} {
		runes, boxes := set(c.text, c.track, c.rise)
		if got := spaced(runes, boxes); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	if got := spaced([]rune("abc d"), []box{{nan, nan, nan, nan}, {}, {-inf, inf, inf, -inf}, {}, {5, 0, 0, 9}}); strings.ReplaceAll(got, " ", "") != "abcd" {
		t.Errorf("boxes of nonsense: %q", got)
	}
}

func TestMended(t *testing.T) {
	for _, file := range []string{"", "stream", "stream\n", "endstream stream\r\nx\x9c", "stream\nx\x9c\xff\xff\xff\xffendstream"} {
		if got := string(mended([]byte(file))); got != file {
			t.Errorf("%q became %q", file, got)
		}
	}
	for m, want := range map[string]string{
		"1 beginbfchar <01> <02> endbfchar":                              "",
		"19 beginbfchar <01> <02>":                                       "",
		"9 beginbfchar <1> <2>\nendbfchar\nend":                          "1 beginbfchar <1> <2>\nendbfchar",
		"x beginbfrange <1> <2> [<3> <4>] endbfrange":                    "x1 beginbfrange <1> <2> [<3> <4>] endbfrange",
		"2 beginbfrange <1> <2> <3> <d08080> <d080bf> <0400> endbfrange": "1 beginbfrange <1> <2> <3> endbfrange",
		"1 beginbfchar <1> <2> <3> <4> endbfchar 2 begin":                "2 beginbfchar <1> <2> <3> <4> endbfchar",
	} {
		if got := string(counted([]byte(m))); got != want {
			t.Errorf("%q became %q, want %q", m, got, want)
		}
	}
}

func TestThreadClock(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start, ran := time.Now(), threadClock()
	for ran() < time.Millisecond {
	}
	if total := time.Since(start); ran() > total+time.Millisecond {
		t.Errorf("ran %s in %s", ran(), total)
	}
}
