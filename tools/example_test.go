package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"

	"moltisfs/config"
	"moltisfs/tools"
)

// workspace makes a directory for an example, and in it one to work in. done removes both.
func workspace() (dir, work string, done func()) {
	dir, err := os.MkdirTemp("", "example")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if work = filepath.Join(dir, "work"); err == nil {
		err = os.Mkdir(work, 0o755)
	}
	if err != nil {
		log.Fatal(err)
	}
	return dir, work, func() { os.RemoveAll(dir) }
}

// A gateway opens one suite and hands it the calls of its models. Here the
// operator opens one directory and approves nothing by hand.
func Example() {
	dir, work, done := workspace()
	defer done()

	cfg := config.Default()
	cfg.Tools.FS.AllowPaths = []string{work + "/**"}
	cfg.Tools.FS.RequireApproval = false
	cfg.Tools.FS.CheckpointBeforeMutation = true
	suite, err := tools.Open(cfg, tools.Options{DataDir: filepath.Join(dir, "data")})
	if err != nil {
		log.Fatal(err)
	}
	defer suite.Close()

	file := filepath.Join(work, "greeting.txt")
	call := func(tool string, args map[string]any) tools.Payload {
		raw, _ := json.Marshal(args)
		p, err := suite.Call(context.Background(), tools.Call{Session: "s1", Tool: tool, Args: raw})
		if err != nil {
			log.Fatal(err) // the host is broken
		}
		return p
	}
	call("Write", map[string]any{"file_path": file, "content": "hello\nworld\n"})
	call("Edit", map[string]any{"file_path": file, "old_string": "world", "new_string": "there"})
	fmt.Println(call("Read", map[string]any{"file_path": file}).Text())

	refused := call("Edit", map[string]any{"file_path": file, "old_string": "World", "new_string": "you"}).(*tools.Refusal)
	fmt.Println(refused.Kind())
	// Output:
	//      1→hello
	//      2→there
	// no_match
}

// The host asks its own user: a Question has the diff, and what was approved is what runs.
func ExampleApproverFunc() {
	dir, work, done := workspace()
	defer done()

	ask := tools.ApproverFunc(func(_ context.Context, q tools.Question) (tools.Answer, error) {
		fmt.Printf("%s %s +%d −%d?\n", q.Tool, filepath.Base(q.Paths[0]), q.Added, q.Removed)
		if filepath.Ext(q.Paths[0]) == ".md" {
			return tools.Answer{Decision: tools.Approved, By: "ada"}, nil
		}
		return tools.Answer{Decision: tools.Denied, By: "ada", Reason: "only notes, please"}, nil
	})
	cfg := config.Default() // require_approval is true
	cfg.Tools.FS.AllowPaths = []string{work + "/**"}
	suite, err := tools.Open(cfg, tools.Options{DataDir: filepath.Join(dir, "data"), Approver: ask})
	if err != nil {
		log.Fatal(err)
	}
	defer suite.Close()

	ctx, as := context.Background(), tools.Call{Session: "s1"}
	args := tools.WriteArgs{FilePath: filepath.Join(work, "notes.md"), Content: "buy milk\n"}
	made, err := tools.Do[*tools.Write](ctx, suite, args, as)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("created:", made.Created)

	args.FilePath = filepath.Join(work, "main.go")
	_, err = tools.Do[*tools.Write](ctx, suite, args, as)
	if no, ok := errors.AsType[*tools.Refusal](err); ok {
		fmt.Println(no.Kind())
	}
	// Output:
	// Write notes.md +1 −0?
	// created: true
	// Write main.go +1 −0?
	// approval_denied
}

// A sink hears how each call ended: for a log or counters of the host's own.
type sink struct{}

func (sink) Name() string { return "sink" }

func (sink) AfterToolCall(_ context.Context, c tools.AfterToolCall) error {
	fmt.Println(c.Tool, c.Outcome)
	return nil
}

// Hooks run around every call, whichever way it comes in.
func ExampleOptions_hooks() {
	dir, _, done := workspace()
	defer done()
	suite, err := tools.Open(config.Default(), tools.Options{
		DataDir: filepath.Join(dir, "data"),
		Program: tools.Program{Name: "my-gateway 1.0"}, // on record at start and stop
		Hooks:   tools.Hooks{After: []tools.AfterHook{sink{}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer suite.Close()
	args := tools.ReadArgs{FilePath: filepath.Join(dir, "nothing")}
	_, err = tools.Do[*tools.Content](context.Background(), suite, args, tools.Call{Session: "s1"})
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output:
	// Read not_found
	// true
}

// An agent in an editor hands in the fs methods of its client, which a connection of the Agent Client
// Protocol offers in clientCapabilities. A method that is not offered stays nil.
func ExampleEditor() {
	dir, work, done := workspace()
	defer done()
	file := filepath.Join(work, "notes.md")
	if err := errors.Join(os.WriteFile(file, []byte("saved\n"), 0o644)); err != nil {
		log.Fatal(err)
	}
	buffers := map[string]string{file: "typed, not saved\n"} // here the client is this map

	cfg := config.Default()
	cfg.Tools.FS.AllowPaths, cfg.Tools.FS.RequireApproval = []string{work + "/**"}, false
	suite, err := tools.Open(cfg, tools.Options{DataDir: filepath.Join(dir, "data")})
	if err != nil {
		log.Fatal(err)
	}
	defer suite.Close()
	as := tools.Call{Session: "s1", Overlay: &tools.Editor{
		Read: func(_ context.Context, path string) (string, error) { // fs/read_text_file
			if text, open := buffers[path]; open {
				return text, nil
			}
			b, err := os.ReadFile(path) // an error with code -32002 becomes fs.ErrNotExist
			return string(b), err
		},
		Write: func(_ context.Context, path, text string) error { // fs/write_text_file
			buffers[path] = text
			return nil
		},
	}}
	ctx := context.Background()
	read, err := tools.Do[*tools.Content](ctx, suite, tools.ReadArgs{FilePath: file}, as)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(read.Text())
	made, err := tools.Do[*tools.Edit](ctx, suite, tools.EditArgs{FilePath: file, OldString: "typed", NewString: "edited"}, as)
	if err != nil {
		log.Fatal(err)
	}
	disk, _ := os.ReadFile(file)
	fmt.Printf("in the editor: %v\n%s%s", made.InEditor, buffers[file], disk)
	// Output:
	//      1→typed, not saved
	// [this is unsaved text of the user's editor; the disk has another]
	// in the editor: true
	// edited, not saved
	// saved
}

// A host that has a client on a pair of streams serves its suite there.
func ExampleServeMCP() {
	dir, work, done := workspace()
	defer done()
	if err := os.WriteFile(filepath.Join(work, "a.txt"), []byte("hello\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	cfg := config.Default()
	cfg.Tools.FS.AllowPaths = []string{work + "/**"}
	suite, err := tools.Open(cfg, tools.Options{DataDir: filepath.Join(dir, "data"), Program: tools.Program{Name: "example 1.0"}})
	if err != nil {
		log.Fatal(err)
	}
	defer suite.Close()

	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"probe","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Glob","arguments":{"pattern":"*.txt","path":"` + work + `"}}}
`)
	var out bytes.Buffer
	if err := tools.ServeMCP(context.Background(), suite.Dialect(), in, &out, tools.MCPOptions{Version: "1.0"}); err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var m struct {
			ID     int
			Result struct {
				ServerInfo struct{ Name string }
				IsError    bool
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.ID, m.Result.ServerInfo.Name, m.Result.IsError, strings.Contains(line, "a.txt"))
	}
	// Output:
	// 1 moltis-fs false false
	// 2  false true
}
