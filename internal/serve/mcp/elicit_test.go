package mcp_test

import (
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/config"
	"moltisfs/internal/serve/mcp"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// A diff that is too long to be shown whole is not approved by accepting the form alone.
func TestElicitationOfWhatIsNotShown(t *testing.T) {
	long := strings.Repeat("x\n", 1500)
	for _, revision := range revisions {
		for _, c := range []struct{ action, content, kind string }{
			{"accept", long, "approval_denied"},
			{"accept unseen", long, "write"},
			{"decline unseen", long, "approval_denied"},
			{"accept", "short\n", "write"},
		} {
			root := toolstest.Tree(t)
			f := file(t, root, "a.txt", "one\n")
			form := ""
			s := start(t, config.Default(), tools.Options{}, mcp.Options{Elicit: true}, "test", revision, func(p *sdk.ElicitParams) string {
				form = fmt.Sprint(p.RequestedSchema)
				return c.action
			})
			r := call(t, s, "Write", map[string]any{"file_path": f, "content": c.content})
			if kindOf(r) != c.kind || (content(t, f) == c.content) != (c.kind == "write") {
				t.Errorf("%s, %s of %d bytes: %s", revision, c.action, len(c.content), mustJSON(t, r))
			}
			if strings.Contains(form, "lines of the diff unseen") != (c.content == long) {
				t.Errorf("%s, %d bytes: the form is %s", revision, len(c.content), form)
			}
			if c.action == "accept" && c.content == long && !strings.Contains(textOf(t, r), "too long to be shown whole") {
				t.Errorf("%s: %s", revision, textOf(t, r))
			}
		}
	}
}
