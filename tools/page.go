package tools

import (
	"cmp"

	"moltisfs/internal/dialect"
	"moltisfs/readers"
)

// fitted is the suite as it answers a caller with such a page.
func (s *Suite) fitted(p dialect.Page) *Suite {
	f := *s
	tokens := s.cfg.ContextWindowTokens
	window := int(readers.WindowBytes(tokens))
	if p.Bytes <= 0 || tokens > 0 && !p.Hard {
		p.Bytes = window
	}
	p.Bytes = min(p.Bytes, window)
	if s.cfg.LineNumbers == "auto" {
		f.cfg.LineNumbers = cmp.Or(p.Numbers, "arrow")
	}
	f.page = p
	return &f
}
