package edit

import (
	"strings"

	"moltisfs/internal/edit/mend"
)

// numbersOff lists the ways in which line numbers may have been pasted with Old. The numbers must
// count up line by line; only the first line may be without, and empty lines.
func numbersOff(e Edit) (out []repair) {
	if !strings.ContainsAny(e.Old, "0123456789") {
		return nil
	}
	for _, sign := range mend.NumberSigns() {
		old, first, numbered, bare, ok := mend.StripNumbers(e.Old, sign)
		if !ok || numbered == 0 || sign == " " && numbered < 2 {
			continue
		}
		r := repair{cause: CauseLineNumbers, old: old, new: e.New, numbered: first, several: numbered > 1, inside: bare}
		if s, from, n, _, ok := mend.StripNumbers(e.New, sign); ok && n > 0 && from == first {
			r.new = s
		} else if each, repeated := mend.StripEach(e.New, e.Old, sign); repeated {
			r.new = each
		} else if each != e.New {
			r.other, r.unsure = each, "new_string carries line numbers that do not follow those of old_string: leave them out of both"
		}
		out = append(out, r)
	}
	return out
}
