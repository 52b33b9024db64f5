package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"moltisfs/config"
	"moltisfs/tools"
)

// A gateway opens one suite and hands it the calls of its models. Here the
// operator opens one directory and approves nothing by hand.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dir, _ = filepath.EvalSymlinks(dir)
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		log.Fatal(err)
	}

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
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dir, _ = filepath.EvalSymlinks(dir)
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		log.Fatal(err)
	}

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
	done, err := tools.Do[*tools.Write](ctx, suite, args, as)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("created:", done.Created)

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
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
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
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dir, _ = filepath.EvalSymlinks(dir)
	work := filepath.Join(dir, "work")
	file := filepath.Join(work, "notes.md")
	if err := errors.Join(os.Mkdir(work, 0o755), os.WriteFile(file, []byte("saved\n"), 0o644)); err != nil {
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
	done, err := tools.Do[*tools.Edit](ctx, suite, tools.EditArgs{FilePath: file, OldString: "typed", NewString: "edited"}, as)
	if err != nil {
		log.Fatal(err)
	}
	disk, _ := os.ReadFile(file)
	fmt.Printf("in the editor: %v\n%s%s", done.InEditor, buffers[file], disk)
	// Output:
	//      1→typed, not saved
	// [this is unsaved text of the user's editor; the disk has another]
	// in the editor: true
	// edited, not saved
	// saved
}
