package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
)

// unjoin gives the problems of a joined error.
func unjoin(t *testing.T, err error) []*Problem {
	t.Helper()
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%T is not a joined error", err)
	}
	var out []*Problem
	for _, e := range joined.Unwrap() {
		var p *Problem
		if !errors.As(e, &p) {
			t.Fatalf("%T among the problems", e)
		}
		out = append(out, p)
	}
	return out
}

func TestSeedExample(t *testing.T) {
	c, err := Decode([]byte(`
[tools.policy]
allow = ["exec", "browser", "memory", "Read", "Glob", "Grep"]

[tools.fs]
workspace_root = "/home/user/project"
allow_paths = ["/home/user/project/**"]
deny_paths  = ["/home/user/project/.env*", "/home/user/project/secrets/**"]
track_reads = true
must_read_before_write = true
max_read_bytes = 10_485_760  # 10 MB
binary_policy = "base64"
respect_gitignore = false
checkpoint_before_mutation = true
context_window_tokens = 200000
approval_timeout = "2m"
[tools.fs.checkpoint]
keep_within = "30d"
`), "m.toml")
	must(t, err)
	want := Default()
	want.Tools.Policy.Allow = []string{"exec", "browser", "memory", "Read", "Glob", "Grep"}
	fs := &want.Tools.FS
	fs.WorkspaceRoot = "/home/user/project"
	fs.AllowPaths = []string{"/home/user/project/**"}
	fs.DenyPaths = []string{"/home/user/project/.env*", "/home/user/project/secrets/**"}
	fs.TrackReads, fs.MustReadBeforeWrite, fs.CheckpointBeforeMutation = true, true, true
	fs.BinaryPolicy, fs.RespectGitignore, fs.ContextWindowTokens = "base64", false, 200000
	fs.Checkpoint.KeepWithin = Duration(30 * 24 * time.Hour)
	if at := c.Tools.FS.DenyAt(1); at != "m.toml:8" || c.Tools.FS.DenyAt(2) != "" {
		t.Error(at)
	}
	c.Tools.FS.denyAt = nil
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	again, err := Decode(c.TOML(), "again.toml")
	again.Tools.FS.denyAt = nil
	if err != nil || !reflect.DeepEqual(c, again) {
		t.Errorf("TOML does not come back: %v\n%s", err, c.TOML())
	}
}

func TestEmptyIsDefault(t *testing.T) {
	for _, src := range []string{"", "\ufeff", "# nothing\n", "[tools]\n[tools.fs]\n[tools.policy]\n"} {
		if c, err := Decode([]byte(src), "m.toml"); err != nil || !reflect.DeepEqual(c, Default()) {
			t.Errorf("%q: %v", src, err)
		}
	}
	if err := Default().Check(); err != nil {
		t.Errorf("Default is not valid: %v", err)
	}
}

// Everything that is wrong is told at once, in file order, with its place.
func TestAllProblemsAtOnce(t *testing.T) {
	src := strings.TrimLeft(`
track_reads = true
[tool.fs]
x = 1
[tools.fss]
[tools.fs]
treck_reads = true
must_read_before_write = true
binary_policy = "base46"
max_read_bytes = "10MB"
workspace_root = "proj"
deny_paths = ["/a", "/b/é/[x", "c/d", 7,
  "/ok/../x" ]
approval_timeout = 120
allow = []
respect_gitignore = "yes"
max_write_bytes = 0
line_numbers = 1.5
context_window_tokens = 0
search_deadline = "soon"
[server]
port = 1
[tools.policy]
deny = ["Wr*te", ""]
[tools.fs.checkpoint]
max_bytes = 10
keep_within = "-1h"
exclude = ["*.pem", "*.[k", "a/b"]
encrypt_to = "me"
[tools.fs.hooks]
before_tool_call = ["/opt/check --strict", "check"]
timeout = "0s"
`, "\n")
	want := `
m.toml:1:1: track_reads: unknown key; it belongs under [tools.fs]
m.toml:2:2: tool: unknown section; did you mean [tools.fs]?
m.toml:4:2: tools.fss: unknown section; did you mean [tools.fs]?
m.toml:6:1: tools.fs.treck_reads: unknown key; did you mean "track_reads"?
m.toml:7:1: tools.fs.must_read_before_write: needs track_reads = true, which is false; add track_reads = true
m.toml:8:1: tools.fs.binary_policy: "base46" is not known; did you mean "base64"? Allowed: "reject", "base64"
m.toml:9:1: tools.fs.max_read_bytes: must be a whole number without a unit, not the string "10MB"; write max_read_bytes = 10485760
m.toml:10:1: tools.fs.workspace_root: "proj" is not absolute; begin it with /
m.toml:11:1: tools.fs.deny_paths[3]: must be a string, not 7; put it in quotes
m.toml:11:1: tools.fs.deny_paths[1]: bad glob "/b/é/[x": class is never closed; a literal bracket is \[
m.toml:11:1: tools.fs.deny_paths[2]: bad glob "c/d": not absolute; begin with / or, for any depth, with **/
m.toml:11:1: tools.fs.deny_paths[4]: bad glob "/ok/../x": a ".." segment is never part of a real path
m.toml:13:1: tools.fs.approval_timeout: must be a duration, not 120; write approval_timeout = "120s"
m.toml:14:1: tools.fs.allow: unknown key; it belongs under [tools.policy]
m.toml:15:1: tools.fs.respect_gitignore: must be true or false, not the string "yes"; write respect_gitignore = true
m.toml:16:1: tools.fs.max_write_bytes: must be more than 0; leave the key out to have none
m.toml:17:1: tools.fs.line_numbers: must be one of "auto", "arrow", "tab", "compact", not 1.5; write line_numbers = "auto"
m.toml:18:1: tools.fs.context_window_tokens: must be more than 0; leave the key out to have none
m.toml:19:1: tools.fs.search_deadline: must be a duration, not the string "soon"; units are "ms", "s", "m", "h", "d", "w"
m.toml:23:1: tools.policy.deny[0]: "Wr*te": a star can only stand at the end; write "Wr*" or the whole name
m.toml:23:1: tools.policy.deny[1]: is empty; leave it out
m.toml:25:1: tools.fs.checkpoint.max_bytes: 10 is less than 1048576; write max_bytes = 1073741824
m.toml:26:1: tools.fs.checkpoint.keep_within: must not be negative: -3600s; write keep_within = "7d"
m.toml:27:1: tools.fs.checkpoint.exclude[1]: bad glob "*.[k": class is never closed; a literal bracket is \[
m.toml:27:1: tools.fs.checkpoint.exclude[2]: bad glob "a/b": not absolute; begin with / or, for any depth, with **/
m.toml:28:1: tools.fs.checkpoint.encrypt_to: not an age recipient; age-keygen prints one: it begins with "age1"
m.toml:30:1: tools.fs.hooks.before_tool_call[1]: "check" does not begin with an absolute path; name the program from the root on, with its arguments behind it
m.toml:31:1: tools.fs.hooks.timeout: must be more than 0; write timeout = "5s"
`
	_, err := Decode([]byte(src), "m.toml")
	if got := "\n" + err.Error() + "\n"; got != want {
		t.Errorf("got:%s", got)
		g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Errorf("first difference:\n got %s\nwant %s", g[i], w[i])
				break
			}
		}
	}
}

func TestProblems(t *testing.T) {
	for _, c := range []struct {
		src  string
		want string // the whole error
	}{
		// Redefinitions that github.com/BurntSushi/toml v1.6.0 accepts, dropping a value in
		// silence.
		{"tools.fs.track_reads = true\ntools.fs = 2", "m:1:1: tools.fs: a section, not a value; write its keys below [tools.fs]"},
		{"[tools]\nfs.deny_paths = ['/a']\nfs = {deny_paths = ['/b']}", "m:3:7: tools.fs.deny_paths: defined a second time; keep one of them"},
		{"[tools]\nfs.deny_paths = ['/a']\nfs = {read_only = true}", "m:3:7: tools.fs: defined a second time; keep one of them"},
		{"[tools]\nfs = {deny_paths = ['/a']}\nfs.deny_paths = ['/b']", "m:3:1: tools.fs.deny_paths: defined a second time; keep one of them"},
		{"[tools]\nfs = {deny_paths = ['/a']}\n[tools.fs]\ndeny_paths = ['/b']", "m:3:2: tools: defined a second time; keep one of them"},
		{"tools.fs.deny_paths = ['/a']\n[tools.fs]\ndeny_paths = ['/b']", "m:3:1: tools.fs.deny_paths: defined a second time; keep one of them"},
		{"[tools]\nfs = {deny_paths = ['/a'], deny_paths = ['/b']}", "m:2:28: tools.fs.deny_paths: defined a second time; keep one of them"},
		{"tools.fs.track_reads = true\n[tools.fs]\nbinary_policy = \"no\"", "m:3:1: tools.fs.binary_policy: \"no\" is not known; use one of \"reject\", \"base64\""},
		// Those that it does find.
		{"[tools.fs]\ntrack_reads = true\ntrack_reads = false", "m:3:1: tools.fs.track_reads: defined a second time; keep one of them"},
		{"[tools.fs]\n[tools.fs]", "m:2:2: tools: defined a second time; keep one of them"},
		// Syntax.
		{"[tools.fs]\ntrack_reads = tru", "m:2:15: tools.fs.track_reads: expected value but found \"tru\" instead"},
		{"[tools", "m:1:6: expected '.' or ']' to end table name, but got '\\x00' instead"},
		{"\xff", "m:1:1: not valid UTF-8; save the file as UTF-8"},
		{"# é\nx = \"\xff\"", "m:2:6: not valid UTF-8; save the file as UTF-8"},
		// Sections and values in each other's place.
		{"[[tools.fs]]\ntrack_reads = true", "m:1:3: tools.fs: given as a list of sections; write [tools.fs] once"},
		{"[tools.fs.track_reads]\nx = 1", "m:1:2: tools.fs.track_reads: must be true or false, not a section; write track_reads = true, or track_reads = false"},
		{"[tools.fs]\ntrack_reads.x = 1", "m:2:1: tools.fs.track_reads: must be true or false, not a section; write track_reads = true, or track_reads = false"},
		{"[tools.fs]\ntrack_reads = {a = 1}", "m:2:1: tools.fs.track_reads: must be true or false, not a section; write track_reads = true, or track_reads = false"},
		{"tools = 1", "m:1:1: tools: a section, not a value; write its keys below [tools]"},
		{"[tools]\nfs = 3", "m:2:1: tools.fs: a section, not a value; write its keys below [tools.fs]"},
		{"[tools]\nfs = {track_reads = true,\n  binry_policy = \"x\"}", "m:2:1: tools.fs.binry_policy: unknown key; did you mean \"binary_policy\"?"},
		// Names.
		{"[Tools.FS]\ntrack_reads = true", "m:1:2: Tools: unknown section; did you mean [tools.fs]?"},
		{"[fs]\ntrack_reads = true", "m:1:2: fs: unknown section; did you mean [tools.fs]?"},
		{"[checkpoint]", "m:1:2: checkpoint: unknown section; did you mean [tools.fs.checkpoint]?"},
		{"[tools.fs.checkpiont]\nmax_bites = 1", "m:1:2: tools.fs.checkpiont: unknown section; did you mean [tools.fs.checkpoint]?"},
		{"[tools.fs]\nTrack-Reads = true", "m:2:1: tools.fs.Track-Reads: unknown key; did you mean \"track_reads\"?"},
		{"[tools.fs]\n\"track\" = 1", "m:2:1: tools.fs.track: unknown key; known here: workspace_root, allow_paths, deny_paths, protect_secret, protect_exec, unprotected, read_only, tool_prefix, track_reads, must_read_before_write, require_approval, approval_timeout, max_read_bytes, max_write_bytes, binary_policy, line_numbers, context_window_tokens, create_parents, edit_matching, respect_gitignore, search_deadline, search_documents, policies, policies_mode, checkpoint_before_mutation"},
		{"[tools.policy]\nprofile = 'codign'", "m:2:1: tools.policy.profile: \"codign\" is not known; did you mean \"coding\"? Allowed: \"full\", \"coding\", \"minimal\""},
		{"[tools.policy]\n\"a b\" = 1", "m:2:1: tools.policy.\"a b\": unknown key; known here: profile, allow, deny"},
		{"[tools.fs]\nmax_bytes = 5", "m:2:1: tools.fs.max_bytes: unknown key; it belongs under [tools.fs.checkpoint]"},
		{"[tools.sandbox]\nsessions = ['[', 'ci/[a/]*']", "m:2:1: tools.sandbox.sessions[0]: bad glob \"[\"; write as \"ci/*\" or \"untrusted-*\""},
		{"[tools.sandbox]\ncommand = ['bubblewrap:box']", "m:2:1: tools.sandbox.command[0]: \"bubblewrap:box\" names no absolute directory; write as \"bubblewrap:/srv/box\""},
		{"[tools.sandbox]\ncommand = ['dokcer:x']", "m:2:1: tools.sandbox.command[0]: \"dokcer:x\" is no ready form; did you mean \"docker:x\"?"},
		{"[tools.sandbox]\ncommand = ['ssh:x', 'y']", "m:2:1: tools.sandbox.command[0]: \"ssh:x\" is no ready form; the ready forms are \"docker\", \"podman\", \"bubblewrap\", \"ssh\", each with a colon and a name behind it, and no other word"},
		// Values.
		{"[tools.fs]\nworkspace_root = '~/x'", "m:2:1: tools.fs.workspace_root: ~ is not expanded; write the home directory out"},
		{"[tools.fs]\nworkspace_root = '/a/../b'", "m:2:1: tools.fs.workspace_root: \"/a/../b\" holds \".\", \"..\" or an empty name; write \"/b\""},
		{"[tools.fs]\nworkspace_root = ''", "m:2:1: tools.fs.workspace_root: is empty; leave the key out to have none"},
		{"[tools.fs]\nworkspace_root = 2024-01-01", "m:2:1: tools.fs.workspace_root: must be a string, not a date; write workspace_root = \"/home/user/projects/my-app\""},
		{"[tools.fs]\nallow_paths = '/x/**'", "m:2:1: tools.fs.allow_paths: must be a list of strings, not the string \"/x/**\"; write allow_paths = [\"/x/**\"]"},
		{"[tools.fs]\nallow_paths = [['/x'], {a = 1}, '~/y', '/z ', \"/w\\t\"]", "m:2:1: tools.fs.allow_paths[0]: must be a string, not a list; put it in quotes\nm:2:1: tools.fs.allow_paths[1]: must be a string, not a section; put it in quotes\nm:2:1: tools.fs.allow_paths[2]: bad glob \"~/y\": ~ is not expanded; write the home directory out\nm:2:1: tools.fs.allow_paths[3]: bad glob \"/z \": ends in a blank\nm:2:1: tools.fs.allow_paths[4]: bad glob \"/w\\u0009\": ends in a blank"},
		{"[tools.fs]\nallow_paths = [\n  # one\n  '''/x/[''', # two, ]\n]", "m:2:1: tools.fs.allow_paths[0]: bad glob \"/x/[\": class is never closed; a literal bracket is \\["},
		{"[tools.fs]\nread_only = 'maybe'", "m:2:1: tools.fs.read_only: must be true or false, not the string \"maybe\"; write read_only = true, or read_only = false"},
		{"[tools.fs]\nread_only = [true]", "m:2:1: tools.fs.read_only: must be true or false, not a list; write read_only = true, or read_only = false"},
		{"[tools.fs]\nmust_read_before_write = true\ntrack_reads = 1", "m:2:1: tools.fs.must_read_before_write: needs track_reads = true, which is false; add track_reads = true\nm:3:1: tools.fs.track_reads: must be true or false, not 1; write track_reads = true"},
		{"[tools.fs]\nmax_read_bytes = -1", "m:2:1: tools.fs.max_read_bytes: must not be negative: -1; write max_read_bytes = 10485760"},
		{"[tools.fs]\nmax_read_bytes = '10485760'", "m:2:1: tools.fs.max_read_bytes: must be a whole number without a unit, not the string \"10485760\"; write max_read_bytes = 10485760"},
		{"[tools.fs]\nmax_read_bytes = 1e7", "m:2:1: tools.fs.max_read_bytes: must be a whole number without a unit, not 1e+07; write max_read_bytes = 10485760"},
		{"[tools.fs]\napproval_timeout = '0s'", "m:2:1: tools.fs.approval_timeout: must be more than 0; write approval_timeout = \"120s\""},
		{"[tools.js]\nmemory = 64", "m:2:1: tools.js.memory: 64 is less than 4194304; write memory = 536870912"},
		{"[tools.fs.checkpoint]\nmax_bytes = 100000\nmax_file_bytes = 1000", "m:2:1: tools.fs.checkpoint.max_bytes: 100000 is less than 1048576; write max_bytes = 1073741824"},
		{"[tools.fs.checkpoint]\nmax_bytes = 2000000", "m:2:1: tools.fs.checkpoint.max_bytes: 2000000 is less than max_file_bytes, 67108864; the store must have room for the largest file"},
		{"[tools.fs.checkpoint]\nkeep_last = 0\nkeep_within = '0s'", "m:2:1: tools.fs.checkpoint.keep_last: 0, and keep_within is 0 as well: nothing would be kept; set one of the two, or checkpoint_before_mutation = false"},
	} {
		_, err := Decode([]byte(c.src), "m")
		got := "accepted"
		if err != nil {
			got = err.Error()
			unjoin(t, err)
		}
		if got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.src, got, c.want)
		}
	}
	if _, err := Decode([]byte("[tools.fs.checkpoint]\nkeep_last = 0"), "m"); err != nil {
		t.Errorf("keep_last = 0 with keep_within: %v", err)
	}
}

// Every enum, list and number of the schema refuses a wrong value: a key added later is covered
// too.
func TestEveryKeyIsStrict(t *testing.T) {
	schema().walk(func(f *field) {
		if f.section() {
			return
		}
		section := "[" + strings.TrimSuffix(f.key, "."+f.name) + "]\n"
		wrong := []string{"1979-05-27", "[1]"}
		switch {
		case f.enum != nil:
			wrong = append(wrong, `"neither"`, `""`, `"`+strings.ToUpper(f.enum[0])+`"`)
		case f.typ == durationType:
			wrong = append(wrong, `"-1s"`, `"1"`, `"99999999h"`, "5")
		case f.typ.Kind() == reflect.Slice:
			wrong = append(wrong, `[""]`, `["a "]`)
		case f.typ.Kind() == reflect.Bool:
			wrong = append(wrong, "0", `"false"`)
		case f.typ.Kind() != reflect.String:
			wrong = append(wrong, "-1", "true", "9223372036854775808")
		}
		for _, v := range wrong {
			_, err := Decode([]byte(section+f.name+" = "+v), "m")
			if err == nil {
				t.Errorf("%s = %s is accepted", f.key, v)
				continue
			}
			for _, p := range unjoin(t, err) {
				if p.Line != 2 {
					t.Errorf("%s = %s: %v has not the line", f.key, v, p)
				}
			}
		}
		if f.doc == "" || !strings.HasSuffix(f.doc, ".") {
			t.Errorf("%s: the doc tag is no sentence: %q", f.key, f.doc)
		}
		for _, e := range f.enum {
			if !strings.Contains(f.doc, e) {
				t.Errorf("%s: the doc tag does not explain %q", f.key, e)
			}
		}
	})
}

func TestCheckWithoutFile(t *testing.T) {
	c := Default()
	c.Tools.FS.MustReadBeforeWrite = true
	c.Tools.FS.DenyPaths = []string{"/ok", "secrets/**"}
	problems := unjoin(t, c.Check())
	if len(problems) != 2 {
		t.Fatalf("%v", c.Check())
	}
	if got, want := problems[0].Error(), `tools.fs.deny_paths[1]: bad glob "secrets/**": not absolute; begin with / or, for any depth, with **/`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if problems[1].Key != "tools.fs.must_read_before_write" || problems[1].Line != 0 {
		t.Errorf("%+v", problems[1])
	}
}

func TestTooLarge(t *testing.T) {
	for name, src := range map[string]string{"bytes": strings.Repeat("#", MaxSize+1), "headers": strings.Repeat("[a]\n", MaxSize/5)} {
		if _, err := Decode([]byte(src), "m"); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A file of nothing but wrong or foreign names is judged in a moment.
func TestManyNames(t *testing.T) {
	var unknown, foreign strings.Builder
	unknown.WriteString("[tools.fs]\n")
	foreign.WriteString("[server]\n")
	for i := range 30_000 {
		fmt.Fprintf(&unknown, "zz%d = 1\n", i)
		fmt.Fprintf(&foreign, "zz%d = 1\n", i)
	}
	_, err := Decode([]byte(unknown.String()), "m")
	if n := len(unjoin(t, err)); n != mostProblems {
		t.Errorf("%d problems", n)
	}
	if _, err := Decode([]byte(foreign.String()), "m"); err != nil {
		t.Error(err)
	}
}

// The example in the repository is what the schema says.
func TestExampleDecodes(t *testing.T) {
	c, err := Decode(Example(), "example")
	must(t, err)
	if !reflect.DeepEqual(c, Default()) {
		t.Errorf("got  %+v\nwant %+v", c, Default())
	}
	commented := regexp.MustCompile(`(?m)^# ([a-z_]+ = )`)
	if n := len(commented.FindAll(Example(), -1)); n != 12 {
		t.Errorf("%d keys are commented out, want the 12 without a default", n)
	}
	all := bytes.ReplaceAll(Example(), []byte("checkpoint_before_mutation = false"), []byte("checkpoint_before_mutation = true")) // a fleet needs it
	c, err = Decode(commented.ReplaceAll(all, []byte("$1")), "example")
	must(t, err)
	fs := c.Tools.FS
	if fs.WorkspaceRoot == "" || fs.ContextWindowTokens == 0 || fs.Checkpoint.EncryptTo == "" {
		t.Errorf("a key is missing once it is uncommented: %+v", fs)
	}
}

func TestTable(t *testing.T) {
	rows := Table()
	example := string(Example())
	for _, r := range rows {
		line := r.Key + " = " + r.Default
		if r.Default == "" {
			line = "# " + r.Key + " = "
		}
		if !strings.Contains(example, "\n"+line) {
			t.Errorf("%s.%s: example has no %q", r.Section, r.Key, line)
		}
		if r.Doc == "" || r.Type == "" {
			t.Errorf("%+v", r)
		}
	}
	if len(rows) != 71 {
		t.Errorf("%d rows; if a key was added, count it here", len(rows))
	}
}

func TestDuration(t *testing.T) {
	for in, want := range map[string]string{
		"7d": "7d", "168h": "7d", "36h": "36h", "2m": "120s", "1h30m": "1h30m0s", "90s": "90s", "1500ms": "1.5s", "0s": "0s", "0d": "0s", "-5s": "-5s", "2w": "14d", "100000d": "100000d", "15250w": "106750d",
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(in)); err != nil || d.String() != want {
			t.Errorf("%s: %s, %v; want %s", in, d, err, want)
		}
		var again Duration
		if err := again.UnmarshalText([]byte(d.String())); err != nil || again != d {
			t.Errorf("%s does not come back from %s", in, d)
		}
	}
	for _, bad := range []string{"", "5", "d", "-1d", "1.5d", "99999999d", "1 h", "-1w", "106752d", "15251w", "99999999999999999999d"} {
		var d Duration
		if d.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is accepted as %s", bad, d)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Example())
	f.Add([]byte("[tools.fs]\ndeny_paths = ['/a', \"/b\\u0041\", '''\n/c''']\n[tools]\npolicy = {allow = ['*']}"))
	f.Add([]byte("a.b=1\na=2\n[[x]]\ny = {z = [1, {q = 1}]}\n[x.y]"))
	f.Add([]byte("tools.fs.track_reads = true # é\r\n\"\\x41\" = 07:32:00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Decode(data, "f")
		if err == nil {
			if err := c.Check(); err != nil {
				t.Fatalf("decoded, yet: %v", err)
			}
			c.foreign = nil // what is another's is passed by, and not written
			again, err := Decode(c.TOML(), "again")
			c.Tools.FS.denyAt, again.Tools.FS.denyAt = nil, nil
			if err != nil || !reflect.DeepEqual(c, again) {
				t.Fatalf("does not come back: %v\n%s", err, c.TOML())
			}
			return
		}
		last := 0
		for _, p := range unjoin(t, err) {
			if p.Line < last {
				t.Fatalf("out of order: %v", err)
			}
			last = p.Line
			if strings.ContainsFunc(p.Error(), unicode.IsControl) {
				t.Fatalf("a problem breaks the line: %q", p.Error())
			}
			if p.Line > bytes.Count(data, []byte("\n"))+1 {
				t.Fatalf("line %d of %d", p.Line, bytes.Count(data, []byte("\n"))+1)
			}
		}
	})
}

// A whole moltis.toml can be given: what is not ours is passed by and told once; what is nearly ours,
// or would hold somebody, is not.
func TestWholeMoltisFile(t *testing.T) {
	t.Parallel()
	whole := `[server]
port = 8080
[providers.openai]
models = ["a"]
[hooks]
[[hooks.hooks]]
command = "x"
[[channels.list]]
name = "x"
[tools]
max_tool_result_bytes = 50000
agent_loop_detector_window = 2
[tools.exec]
approval_mode = "always"
[tools.exec.sandbox]
mode = "all"
[tools.policy]
profile = "full"
deny = ["Write"]
[tools.fs]
deny_paths = ["/ws/*.pem"]
`
	c, err := Decode([]byte(whole), "moltis.toml")
	if err != nil || !slices.Equal(c.Tools.FS.DenyPaths, []string{"/ws/*.pem"}) {
		t.Fatal(c, err)
	}
	warned := ""
	for _, w := range c.Warnings() {
		warned += w.Error() + "\n"
	}
	const told = "of Moltis, and without effect here: server, providers, hooks, channels, " +
		"tools.max_tool_result_bytes, tools.agent_loop_detector_window, tools.exec\n" +
		`tools.fs.deny_paths[0]: "/ws/*.pem": a * stays within one name here; in Moltis it crosses /; ` +
		"if it is to cross, write a name ** before it or behind it\n"
	if warned != told {
		t.Errorf("it warns\n%snot\n%s", warned, told)
	}
	for _, c := range []struct{ text, want string }{
		{"[filesystem]\ndeny_paths = ['/x']", `m:1:2: filesystem: unknown section; known sections: `},
		{"[tool.fs]\ndeny_paths = ['/x']", `m:1:2: tool: unknown section; did you mean [tools.fs]?`},
		{"[tools.polciy]\ndeny = ['Write']", `m:1:2: tools.polciy: unknown section; did you mean [tools.policy]?`},
		{"[tools.fs.zones]\nmode = 1", `m:1:2: tools.fs.zones: unknown section; `},
		{"max_tool_result_bytes = 1", `m:1:1: max_tool_result_bytes: unknown key; known sections: `},
		{"[tools.policy.agents.x]\ndeny = ['Write']", `m:1:2: tools.policy.agents: unknown section; `},
		{"[agents.presets.x.tools]\ndeny = ['Write']", "m:2:1: agents.presets.x.tools.deny: a layer of the tool policy " +
			"for some callers only, which can't be told apart here; give what it denies to [tools.policy], or serve those " +
			"callers with a configuration of their own"},
		{"[providers.x.policy]\nallow = ['Read']", "m:2:1: providers.x.policy.allow: a layer of the tool policy"},
	} {
		if _, err := Decode([]byte(c.text), "m"); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v; want %s", c.text, err, c.want)
		}
	}
}

// A rule whose star crossed "/" in Moltis is warned of, and one that covers as much here is not.
func TestCrossing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule        string
		allow, deny bool
	}{
		{"/ws/*.pem", true, true}, {"/ws/*", true, false}, {"/ws/.env*", true, false}, {"/ws/*/x", true, true}, {"/ws/a*b/c", true, true},
		{"/ws/**", false, false}, {"**/.env", false, false}, {"/ws/**/*.pem", false, false}, {"${ROOT}/*.pem", true, true},
	} {
		var in Config
		in.Tools.FS.AllowPaths = []string{c.rule}
		allow := len(in.Crossing()) > 0
		in.Tools.FS.AllowPaths, in.Tools.FS.DenyPaths = nil, []string{c.rule}
		if deny := len(in.Crossing()) > 0; allow != c.allow || deny != c.deny {
			t.Errorf("%s: %v and %v", c.rule, allow, deny)
		}
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    Policy
		want []string
	}{
		{Policy{}, nil}, {Policy{Profile: "full"}, nil}, {Policy{Profile: "minimal"}, []string{"exec"}},
		{Policy{Profile: "coding", Allow: []string{"Read"}}, []string{"Read"}},
	} {
		if got := c.p.Names(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q", c.p, got)
		}
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The issuer and the audience are URLs of servers where nobody can answer in their place, and neither goes without the other.
func TestIssuerKeys(t *testing.T) {
	for text, says := range map[string]string{
		"issuer = 'https://a.example'\naudience = 'https://b.example/mcp'":                      "",
		"issuer = 'http://127.0.0.1:7/x'\naudience = 'http://localhost:7780/mcp'":               "",
		"audience = 'https://b.example/mcp'":                                                    "needs issuer",
		"issuer = 'https://a.example'":                                                          "needs audience",
		"issuer = 'http://a.example'\naudience = 'https://b.example/mcp'":                       "not https",
		"issuer = 'http://127.0.0.1.evil.example'\naudience = 'https://b.example/mcp'":          "not https",
		"issuer = 'a.example'\naudience = 'https://b.example/mcp'":                              "not the URL",
		"issuer = 'https://me:secret@a.example'\naudience = 'https://b.example/mcp'":            "not the URL",
		"issuer = 'https://a.example?x=1'\naudience = 'https://b.example/mcp'":                  "not the URL",
		"issuer = 'file:///etc/passwd'\naudience = 'https://b.example/mcp'":                     "not the URL",
		"issuer = 'https://a.example'\naudience = 'files'":                                      "not the URL",
		"issuer = 'https://a.example'\naudience = 'https://b.example/mcp'\nclaim = ''":          "must not be empty",
		"issuer = 'https://a.example'\naudience = 'https://b.example/mcp'\nprincipal = 'email'": "principal",
	} {
		_, err := Decode([]byte("[tools.fs.http]\n"+text+"\n"), "c.toml")
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Whoever holds a database or a bucket of a fleet has no password of it from here, and a server elsewhere proves its name.
func TestFleetKeys(t *testing.T) {
	const db, s3 = "database = 'postgres://u@localhost/m'\n", "contents = 's3://bucket/prefix'\n"
	for text, says := range map[string]string{
		"":                            "",
		db + s3 + "durable = 'local'": "",
		"database = 'postgres://u@db.example:5432/m?sslmode=verify-full'\n" + s3:        "",
		"database = 'postgresql:///m?host=/run/postgresql&user=u&search_path=a'\n" + s3: "",
		"database = 'postgres://u@[::1]:5432/m?passfile=/etc/p'\n" + s3:                 "",
		db + "contents = 's3://bucket?endpoint=http://127.0.0.1:9000&region=x'":         "",
		db:                           "needs contents",
		s3:                           "needs database",
		db + s3 + "durable = 'both'": "not known",
		"database = 'postgres://u:hush@localhost/m'\n" + s3:                          "PGPASSWORD",
		"database = 'postgres://u@localhost/m?password=hush'\n" + s3:                 "PGPASSWORD",
		"database = 'postgres://u@localhost/m?sslkey=k&sslpassword=hush'\n" + s3:     "PGPASSWORD",
		"database = 'postgres://u:hush@local host/m'\n" + s3:                         "not the address",
		"database = 'mysql://u:hush@localhost/m'\n" + s3:                             "postgres://",
		"database = 'host=localhost password=hush'\n" + s3:                           "postgres://",
		"database = 'postgres://u@localhost'\n" + s3:                                 "not the address",
		"database = 'postgres://u@db.example/m'\n" + s3:                              "verify-full",
		"database = 'postgres://u@db.example/m?sslmode=require'\n" + s3:              "verify-full",
		"database = 'postgres://u@localhost,db.example:5432/m'\n" + s3:               "verify-full",
		"database = 'postgres:///m?host=/run/postgresql,db.example'\n" + s3:          "verify-full",
		"database = 'postgres://u@localhost/m?host=db.example'\n" + s3:               "verify-full",
		db + "contents = 'https://bucket.example'":                                   "s3://",
		db + "contents = 's3://key:hush@bucket'":                                     "s3://",
		db + "contents = 's3:///prefix'":                                             "s3://",
		db + "contents = 's3://bucket?secret=hush'":                                  "parameter",
		db + "contents = 's3://bucket?endpoint=http://s3.example'":                   "not https",
		db + "contents = 's3://bucket?endpoint=https://key:hush@s3.example'":         "endpoint=https://HOST",
		db + s3 + "[tools.sandbox]\nmode = 'all'\ncommand = ['docker:x']":            "[tools.sandbox]",
		db + s3 + "[tools.fs]\ncheckpoint_before_mutation = false":                   "checkpoint_before_mutation = true",
		db + s3 + "[tools.fs]\ncheckpoint_before_mutation = false\nread_only = true": "",
	} {
		if !strings.Contains(text, "[tools.fs]") {
			text = "[tools.fs]\ncheckpoint_before_mutation = true\n[tools.fs.fleet]\n" + text
		} else {
			text = "[tools.fs.fleet]\n" + text
		}
		c, err := Decode([]byte(text+"\n"), "c.toml")
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("a secret is told: %v", err)
		}
		if database, contents := c.Tools.FS.Fleet.Place(); err == nil && c.Tools.FS.Fleet.On() == (database == "" || contents == "") || strings.Contains(database+contents, "u@") {
			t.Errorf("%s: %q %q", text, database, contents)
		}
	}
}
