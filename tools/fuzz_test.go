package tools_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// Whatever comes in as arguments is answered with a payload, soon, and a
// refusal leaves every byte where it was.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{"file_path":"$ROOT/a.txt"}`,
		`{"file_path":"$ROOT/a.txt","offset":-1,"limit":1e300,"pages":"1-","tail":"true"}`,
		`{"file_path":"$ROOT/d/../a.txt","content":"x","expected_hash":"00"}`,
		`{"file_path":"$ROOT/a.txt","old_string":"one","new_string":"two","replace_all":"true"}`,
		`{"file_path":"$ROOT/a.txt","edits":[{"old_string":"","new_string":""},{"old_string":"a"}]}`,
		`{"file_path":"$ROOT/a.txt","edits":"[{\"old_string\":\"one\",\"new_string\":\"1\"}]"}`,
		`{"pattern":"(?i)o(?=n)|[[:alpha:]{2,}","path":"$ROOT","-C":99999999999,"head_limit":0}`,
		`{"pattern":"**/{a,b}*.[!t]","path":"$ROOT","limit":0}`,
		`{"pattern":"(a*)*b\\1","output_mode":"content","glob":"!**","type":"go"}`,
		`{"id":"zzzz"}`, `{"file_path":"\u0000"}`, `{"file_path":"\ud800"}`, `[[[[`, `null`, `"x"`, "\xff", `{"a":1,"a":2}`, ``,
		`{"file_path":["$ROOT/a.txt"]}`, `{"FILE_PATH":"x"}`, `{"file_path":"$ROOT/pipe","content":"x"}`, `{"file_path":"/dev/zero"}`,
	} {
		for i := range tools.All() {
			f.Add(uint8(i), seed)
		}
	}
	s, root := suite(f, nil, tools.Options{DataDir: f.TempDir() + "/data"})
	layout := "a.txt = one\nb.bin = hex 00ff\nd/\npipe fifo\nl => a.txt\nout => ../out\n../out = x"
	toolstest.Layout(f, root, layout)
	before := toolstest.Snapshot(f, root)
	f.Fuzz(func(t *testing.T, i uint8, args string) {
		tool := tools.All()[int(i)%len(tools.All())]
		start := time.Now()
		p, err := s.Call(t.Context(), tools.Call{Tool: tool.Name, Args: json.RawMessage(strings.ReplaceAll(args, "$ROOT", root))})
		if err != nil {
			t.Fatalf("%s %q: the host is broken: %v", tool.Name, args, err)
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s %q took %s", tool.Name, args, d) // a hang, not a speed claim
		}
		out, err := tools.Encode(p)
		if err != nil || !json.Valid(out) || !strings.HasPrefix(string(out), `{"kind":"`+p.Kind()+`"`) {
			t.Errorf("%s %q: %v, %s", tool.Name, args, err, out)
		}
		after := toolstest.Snapshot(t, root)
		if !tools.Refused(p) && tool.Effect != tools.Reads {
			before = after
			return
		}
		if !maps.Equal(before, after) {
			t.Errorf("%s %q was refused and changed %v to %v", tool.Name, args, before, after)
		}
	})
}
