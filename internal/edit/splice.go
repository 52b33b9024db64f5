package edit

// A Replacement puts With in the place of the bytes from Start to End of a text, as [Decode] gives
// it.
type Replacement struct {
	Start, End int
	With       string
}

// Splice makes replacements that somebody else has found, sorted and apart from each other. sent is
// what they were made of, for errors. These are as those of Apply.
func Splice(content []byte, sent string, rs []Replacement, o Options) (*Result, error) {
	if len(rs) > MaxReplacements {
		return nil, &TooManyError{What: "replacements", Count: len(rs), Max: MaxReplacements}
	}
	d, res, err := begin(content, &o)
	if err != nil || len(rs) == 0 {
		return nil, err
	}
	step := Step{Replacements: len(rs), Strategy: StrategyPattern, Line: lineAt(d.text, rs[0].Start)}
	list := make([]replacement, len(rs))
	for i, r := range rs {
		list[i] = replacement{r.Start, r.End, r.With}
	}
	if step.Spans, err = d.put(0, Edit{New: sent}, list, o); err != nil {
		return nil, err
	}
	res.Steps, res.Replacements = []Step{step}, len(rs)
	return d.end(res), nil
}
