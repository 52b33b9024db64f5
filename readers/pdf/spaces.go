package pdf

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// textPages notes the text page that was loaded last, by its address in the sandbox: the package tells no addresses, and makes a new
// stack for each character that it is asked about, which costs several times as much as the answer.
type textPages struct {
	ctx  context.Context // that of the call that loaded it
	mod  api.Module
	page uint64
}

const loadsTextPage = "FPDFText_LoadPage"

// NewFunctionListener is called once for each function of the module.
func (l *textPages) NewFunctionListener(def api.FunctionDefinition) experimental.FunctionListener {
	if slices.Contains(def.ExportNames(), loadsTextPage) {
		return l
	}
	return nil
}

func (*textPages) Before(context.Context, api.Module, api.FunctionDefinition, []uint64, experimental.StackIterator) {
}
func (*textPages) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}
func (l *textPages) After(ctx context.Context, mod api.Module, _ api.FunctionDefinition, results []uint64) {
	l.ctx, l.mod, l.page = ctx, mod, results[0]
}

// box is where a character stands: as high as its font, and as wide as it moves the pen.
type box struct{ left, top, right, bottom float32 }

// apart is the room between two boxes, as a share of their height; ok is false where they do not stand side by side, as on a slanting line.
func (b box) apart(c box) (gap float32, ok bool) {
	h := max(b.top-b.bottom, c.top-c.bottom)
	if rise := (b.top + b.bottom - c.top - c.bottom) / 2; !(h > 0) || max(rise, -rise) > h*level {
		return 0, false
	}
	return (max(b.left, c.left) - min(b.right, c.right)) / h, true
}

// within says that a box has no width, or its middle is in another one.
func (b box) within(c box) bool {
	middle := (b.left + b.right) / 2
	return b.left == b.right || c.left <= middle && middle <= c.right
}

// boxes gives the boxes of the characters from 0 to n; a character that PDFium made up has no width.
func (l *textPages) boxes(n int) ([]box, error) {
	one := l.mod.ExportedFunction("FPDFText_GetLooseCharBox")
	room, err := l.mod.ExportedFunction("malloc").Call(l.ctx, 16)
	if err != nil {
		return nil, err
	}
	defer l.mod.ExportedFunction("free").Call(l.ctx, room[0])
	boxes := make([]box, n)
	var stack [3]uint64
	for i := range boxes {
		stack = [3]uint64{l.page, uint64(i), room[0]}
		if err := one.CallWithStack(l.ctx, stack[:]); err != nil {
			return nil, err
		}
		b, ok := l.mod.Memory().Read(uint32(room[0]), 16)
		if !ok {
			return nil, errors.New("no memory of the sandbox")
		}
		if uint32(stack[0]) != 0 {
			f := func(at int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[at:])) }
			boxes[i] = box{f(0), f(4), f(8), f(12)}
		}
	}
	return boxes, nil
}

const (
	// wordSpace is the room between two characters that parts words, as a share of their height.
	wordSpace = 0.1
	// level is how far the middles of two characters of a line may differ in height.
	level = 0.1
)

// spaced puts blanks into a text where its characters stand apart: PDFium asks for half of a blank's width, and where a line is set tight
// there is less. It takes blanks out where they do not: PDFium made them up, or the next letter was set over them.
// Letters of a line may all stand apart, as in a heading: that is not counted.
func spaced(text []rune, at []box) string {
	var b strings.Builder
	gaps := make([]float32, len(text)) // before each; of a blank, between its neighbours
	for from := 0; from < len(text); {
		to := from
		for to < len(text) && text[to] != '\n' {
			to++
		}
		var known []float32
		for i := from + 1; i < to; i++ {
			gaps[i] = float32(math.NaN())
			left := i - 1
			blank := text[i] == ' ' && i+1 < to
			right := i
			if blank {
				right++
			}
			if !joins(text[left]) || !joins(text[right]) {
				continue
			}
			if gap, ok := at[left].apart(at[right]); ok {
				if gaps[i] = gap; !blank {
					known = append(known, gap)
				}
			}
		}
		usual := float32(0)
		if len(known) > 0 {
			slices.Sort(known)
			usual = max(known[len(known)/2], 0)
		}
		for i := from; i < to; i++ {
			switch {
			case i == from:
			case text[i] == ' ' && gaps[i] < usual+wordSpace && (at[i].within(at[i-1]) || at[i].within(at[i+1])):
				continue
			case text[i] != ' ' && gaps[i] > usual+wordSpace:
				b.WriteByte(' ')
			}
			b.WriteRune(text[i])
		}
		if to < len(text) {
			b.WriteByte('\n')
		}
		from = to + 1
	}
	return b.String()
}

// joins says that a character is of a script that parts words by blanks.
func joins(r rune) bool {
	return unicode.IsPrint(r) && r != ' ' && !unicode.Is(unicode.M, r) &&
		!unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
