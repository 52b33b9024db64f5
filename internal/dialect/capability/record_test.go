package capability

import (
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/internal/audit"
)

// The record says what was looked for.
func TestWhatWasAskedIsOnRecord(t *testing.T) {
	t.Parallel()
	r := open(t, nil)
	r.write(t, "a.txt", "one\n")
	for _, c := range []struct{ tool, args, want string }{
		{"filesystem.search", `{"path":"R","pattern":"*.nosuch"}`, `"pattern":"*.nosuch"`},
		{"filesystem.search_content", `{"path":"R","pattern":"wanted"}`, `"pattern":"wanted"`},
		{"filesystem.edit", `{"path":"R","pattern":"one","replace":"two","replace_all":true}`, `"pattern":"one"`},
		{"filesystem.watch", `{"path":"R","pattern":"*.watched","event_types":["create"]}`, `"pattern":"*.watched","window":"create"`},
		{"filesystem.read", `{"path":"R/a.txt","offset":1,"limit":2}`, `"window":"offset 1 limit 2 bytes"`},
	} {
		r.call(t, c.tool, c.args)
		var last string
		err := audit.Read(t.Context(), filepath.Join(r.data, "audit"), false, nil, func(line []byte) error {
			last = string(line)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(last, `"tool":"`+c.tool+`"`) || !strings.Contains(last, c.want) {
			t.Errorf("%s: the record is %s", c.tool, last)
		}
	}
}
