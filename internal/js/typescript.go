package js

import (
	"fmt"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// withoutTypes is TypeScript as JavaScript. The error says where it can't be read.
func withoutTypes(code string) (string, error) {
	out := api.Transform(code, api.TransformOptions{Loader: api.LoaderTS, Format: api.FormatESModule,
		Target: api.ESNext, Charset: api.CharsetUTF8, LogLimit: 5,
		TsconfigRaw: `{"compilerOptions":{"verbatimModuleSyntax":false}}`})
	if len(out.Errors) == 0 {
		return string(out.Code), nil
	}
	var lines []string
	for _, m := range out.Errors {
		at := ""
		if l := m.Location; l != nil {
			begin := max(l.Column-40, 0)
			near := strings.ToValidUTF8(l.LineText[begin:min(l.Column+40, len(l.LineText))], "")
			at = fmt.Sprintf("\n    at script:%d:%d: %s", l.Line, l.Column+1, strings.TrimSpace(near))
		}
		lines = append(lines, m.Text+at)
	}
	return "", fmt.Errorf("SyntaxError: %s", strings.Join(lines, "\n"))
}
