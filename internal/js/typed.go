package js

import (
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// What a person types, input by input.

func problem(code string) *api.Message {
	out := api.Transform(code, api.TransformOptions{Loader: api.LoaderTS, Format: api.FormatESModule,
		Target: api.ESNext, LogLimit: 1})
	if len(out.Errors) == 0 {
		return nil
	}
	return &out.Errors[0]
}

// Unfinished says of whole lines that their script needs more: what is wrong with it is its end.
func Unfinished(lines string) bool {
	p := problem(lines)
	return p != nil && p.Location != nil && p.Location.Line > strings.Count(lines, "\n")
}

// Shown is a script that writes the value of what was typed, if that is an expression.
func Shown(typed string) string {
	expression := strings.TrimRight(strings.TrimSpace(typed), ";")
	shown := "const it = (" + expression + "\n); if (it !== undefined) console.log(it);"
	if problem(shown) != nil {
		return typed
	}
	return shown
}
