package tools_test

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// TestPathsAsWritten: a path that leads to nothing is answered with the same call for the file that
// is meant. Nothing is done before that call comes.
func TestPathsAsWritten(t *testing.T) {
	t.Parallel()
	s, root := suite(t, nil, tools.Options{})
	write(t, root+"/py/sched.py", "a = 1\n")
	write(t, root+"/docs/guide.md", "b\n")
	write(t, root+"/lib/deep/json/decoder.py", "c\n")
	write(t, root+"/src/a.go", "d\n")
	write(t, root+"/src/b.go", "d\n")
	write(t, root+"/caf\u00e9 x.txt", "e\n")
	write(t, root+"/one/twin.txt", "f\n")
	write(t, root+"/two/twin.txt", "f\n")
	edit := map[string]any{"old_string": "a = 1", "new_string": "a = 2"}
	for _, c := range []struct{ tool, asked, meant string }{
		{"Read", `"$/py/sched.py"`, "$/py/sched.py"},
		{"Edit", " $/py/sched.py:12 ", "$/py/sched.py"},
		{"Edit", "py/sched.py", "$/py/sched.py"},
		{"Edit", "$/py/shced.py", "$/py/sched.py"},
		{"MultiEdit", "$/PY/Sched.py", "$/py/sched.py"},
		{"Read", "/workspace/project/py/sched.py", "$/py/sched.py"},
		{"Read", "/home/user/repo/lib/deep/json/decoder.py", "$/lib/deep/json/decoder.py"},
		{"Read", "$/lib/json/decoder.py", "$/lib/deep/json/decoder.py"},
		{"Read", "$/decoder.py", "$/lib/deep/json/decoder.py"},
		{"Read", "$/doc/guide.md", "$/docs/guide.md"},
		{"Read", "$/cafe\u0301\u00a0x.txt", "$/caf\u00e9 x.txt"},
		{"Read", "$/py/sched.py/", "$/py/sched.py"},
		{"Write", "$/doc/new.md", "$/docs/new.md"},
		{"Write", "/workspace/py/new.py", "$/py/new.py"},
		{"Write", `"$/py/new.py"`, "$/py/new.py"},
		{"Grep", "/workspace/lib/deep", "$/lib/deep"},
		{"Grep", "deep", "$/lib/deep"},
		{"Glob", "$/Lib/Deep", "$/lib/deep"},
		{"Grep", ".", "$"},
		// What is not there is not offered, and a change not where there are two.
		{"Read", "/workspace/undefined", ""},
		{"Read", "$/nothing/like/it.zzz", ""},
		{"Edit", "$/twin.txt", ""},
		{"Write", "$/nowhere/sched.py", "$/nowhere/sched.py"}, // with create_parents
		{"Write", "$/dos/guide.md", ""},                       // it is there, with other content
	} {
		args := map[string]any{"pattern": "*", "content": "x"}
		asked := strings.ReplaceAll(c.asked, "$", root)
		key := "file_path"
		switch c.tool {
		case "Grep", "Glob":
			key = "path"
			delete(args, "content")
			args["pattern"] = "a"
		case "Write":
			delete(args, "pattern")
		case "Edit":
			args = map[string]any{"old_string": edit["old_string"], "new_string": "a = 2"}
		case "MultiEdit":
			args = map[string]any{"edits": []any{edit}}
		default:
			args = map[string]any{}
		}
		args[key] = asked
		r, ok := call(t, s, c.tool, args).(*tools.Refusal)
		if !ok {
			t.Errorf("%s %q was carried out", c.tool, asked)
			continue
		}
		got := ""
		if r.Next != nil && r.Next.Tool == c.tool {
			got, _ = r.Next.Args[key].(string)
		}
		want := strings.ReplaceAll(c.meant, "$", root)
		if got != want {
			t.Errorf("%s %q: offered %q, want %q: %s %s", c.tool, asked, got, want, r.Message, r.Hint)
		}
		if want != "" && want != asked && !strings.Contains(r.Text(), want) {
			t.Errorf("%s %q: the text does not name it: %s", c.tool, asked, r.Text())
		}
	}
	if content(t, root+"/py/sched.py") != "a = 1\n" {
		t.Error("a refused call changed the file")
	}
}

// An edit of another file than the one that was named is offered as it applies there: with its own
// strings, with those made to fit, or not at all.
func TestAnotherFileIsTried(t *testing.T) {
	t.Parallel()
	const text = "import os\n\ndef f(x):\n    total = x * 2\n    return total\n"
	s, root := suite(t, nil, tools.Options{})
	for old, want := range map[string]string{
		"    return total\n":                            "    return total\n",
		"def f(x):\n    totl = x * 2\n    return total": "    return total",
		"    something = else_entirely(there)\n":        "",
	} {
		one := map[string]any{"old_string": old, "new_string": strings.ReplaceAll(old, "return total", "return total + 1") + "#"}
		for tool, args := range map[string]map[string]any{"Edit": maps.Clone(one), "MultiEdit": {"edits": []any{one}}} {
			write(t, root+"/py/sched.py", text)
			args["file_path"] = root + "/py/shced.py"
			r := call(t, s, tool, args).(*tools.Refusal)
			if !strings.Contains(r.Hint, "py/sched.py") {
				t.Errorf("%s: %s", tool, r.Hint)
			}
			if (r.Next == nil) != (want == "") {
				t.Errorf("%s %q: offered %v", tool, old, r.Next)
			}
			if r.Next == nil {
				continue
			}
			raw, err := json.Marshal(r.Next.Args)
			if quoted, _ := json.Marshal(want); err != nil || !strings.Contains(string(raw), string(quoted)) ||
				r.Next.Args["file_path"] != root+"/py/sched.py" {
				t.Errorf("%s %q: offered %s", tool, old, raw)
			}
			if r, ok := call(t, s, tool, r.Next.Args).(*tools.Refusal); ok {
				t.Errorf("%s: what is offered is refused: %s: %s", tool, raw, r.Message)
			}
		}
	}
}

// TestSuggestionsKeepTheRules: a denied path answers as a missing one, and nothing that is denied is
// offered, by whatever reading.
func TestSuggestionsKeepTheRules(t *testing.T) {
	t.Parallel()
	s, root := suite(t, func(fs *config.FS) { fs.DenyPaths = []string{fs.WorkspaceRoot + "/secret/**", "/**/*.key"} }, tools.Options{})
	write(t, root+"/secret/plan.txt", "needle\n")
	write(t, root+"/open/id.key", "needle\n")
	write(t, root+"/open/a.txt", "b\n")
	asked := []string{"plan.txt", "$/plan.txt", "$/Secret/plan.txt", `"$/secret/plan.txt"`, "/workspace/secret/plan.txt", "$/open/Id.key", "$/open/id.ky",
		"secret/plan.txt:12", "$/secrt/plan.txt", "$/open/../secret/*", "$/secret*/plan.txt", "id.key", "/home/user/open/id.key", "$/*/id.key"}
	answers := func() (out []string) {
		for _, p := range asked {
			for _, c := range []struct{ tool, key, with string }{{"Read", "file_path", ""}, {"Grep", "path", "pattern"}, {"Glob", "path", "pattern"}, {"Edit", "file_path", "old_string"}} {
				args := map[string]any{c.key: strings.ReplaceAll(p, "$", root)}
				if c.tool == "Edit" {
					args["new_string"] = "x"
				}
				if c.with != "" {
					args[c.with] = "needle"
				}
				raw, err := tools.Encode(call(t, s, c.tool, args))
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, c.tool+" "+string(raw))
			}
		}
		return out
	}
	with := answers()
	for _, dir := range []string{"/secret", "/open/id.key"} {
		if err := os.RemoveAll(root + dir); err != nil {
			t.Fatal(err)
		}
	}
	for i, without := range answers() {
		if with[i] != without {
			t.Errorf("what is denied shows:\n%s\n%s", with[i], without)
		}
	}
}
