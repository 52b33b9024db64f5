package tools_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// A directory's names are all to be had, twenty at a time.
func TestDirectoryListingGoesOn(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	dir := filepath.Join(root, "dir")
	for i := range 47 {
		write(t, filepath.Join(dir, fmt.Sprintf("f%02d", i)), "x")
	}
	seen := map[string]int{}
	args := map[string]any{"file_path": dir}
	for calls := 1; ; calls++ {
		p := call(t, s, "Read", args)
		var r struct {
			Entries    []string `json:"entries"`
			NextOffset int      `json:"next_offset"`
		}
		raw, err := json.Marshal(p)
		if err != nil || json.Unmarshal(raw, &r) != nil || p.Kind() != tools.KindNotRegularFile || calls > 3 {
			t.Fatalf("%v: %s", err, raw)
		}
		for _, n := range r.Entries {
			seen[n]++
		}
		if r.NextOffset == 0 {
			break
		}
		if !strings.Contains(p.Text(), fmt.Sprintf("go on with offset %d", r.NextOffset)) {
			t.Errorf("the way on is not in the text: %s", p.Text())
		}
		args["offset"] = r.NextOffset
	}
	if len(seen) != 47 || seen["f00"] != 1 || seen["f46"] != 1 {
		t.Errorf("seen: %v", seen)
	}
	if p := call(t, s, "Read", map[string]any{"file_path": dir, "offset": 100}); !strings.Contains(p.Text(), "no entry 100: there are 47") {
		t.Errorf("beyond: %s", p.Text())
	}
	for _, c := range []struct {
		args        map[string]any
		first, last string
		names       int
	}{
		{map[string]any{"limit": 3}, "f00", "f02", 3},
		{map[string]any{"limit": 30, "offset": 2}, "f01", "f30", 30},
		{map[string]any{"offset": -3}, "f44", "f46", 3},
		{map[string]any{"offset": -3, "limit": 2}, "f44", "f45", 2},
		{map[string]any{"offset": -100}, "f00", "f19", 20},
		{map[string]any{"tail": true, "limit": 2}, "f45", "f46", 2},
		{map[string]any{"tail": true}, "f27", "f46", 20},
	} {
		c.args["file_path"] = dir
		var r struct {
			Entries []string `json:"entries"`
		}
		raw, _ := json.Marshal(call(t, s, "Read", c.args))
		if err := json.Unmarshal(raw, &r); err != nil || len(r.Entries) != c.names || r.Entries[0] != c.first || r.Entries[c.names-1] != c.last {
			t.Errorf("%v: %s", c.args, raw)
		}
	}
}

// The call that gets a part of a file which is too large is the one that was made, but for its window; the sizes differ where they are told.
func TestTooLargeGoesOnAsAsked(t *testing.T) {
	s, root := suite(t, func(c *config.FS) { c.MaxReadBytes = 20 << 10 }, tools.Options{})
	page := write(t, filepath.Join(root, "p.html"), "<!doctype html><p>x</p>"+strings.Repeat("<p>long</p>\n", 20<<10/12))
	r, ok := call(t, s, "Read", map[string]any{"file_path": page, "render": true, "encoding": "utf-8"}).(*tools.Refusal)
	if !ok || r.Kind() != tools.KindTooLarge || r.Next == nil || r.Next.Args["render"] != true || r.Next.Args["encoding"] != "utf-8" || r.Next.Args["offset"] != 1 {
		t.Fatalf("%+v", r)
	}
	if !strings.Contains(r.Message, "the limit is 20,480") || strings.Contains(r.Message, "KB") {
		t.Errorf("%q", r.Message)
	}
	if p := call(t, s, "Read", r.Next.Args); p.Kind() != "text" {
		t.Errorf("the next call: %s", p.Text())
	}
}

// A notebook of which an output was shortened is not overwritten unseen. Its source, read whole, is what it takes.
func TestNotebookWithCutOutputsIsNotWhollySeen(t *testing.T) {
	s, root := suite(t, func(c *config.FS) { c.MustReadBeforeWrite, c.TrackReads = true, true }, tools.Options{})
	out := func(n int) string { return strings.Repeat("0123456789", n) }
	for _, c := range []struct {
		name, output string
		whole        bool
	}{{"short.ipynb", out(10), true}, {"long.ipynb", out(2000), false}} {
		file := write(t, filepath.Join(root, c.name), `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"cell_type":"code","id":"a","metadata":{},"source":"x",`+
			"\n"+`"outputs":[{"output_type":"stream","name":"stdout","text":"`+c.output[:len(c.output)/2]+`\n`+c.output[len(c.output)/2:]+`"}]}]}`)
		overwrite := map[string]any{"file_path": file, "content": `{"cells":[],"nbformat":4}`, "dry_run": true}
		call(t, s, "Read", map[string]any{"file_path": file})
		if p := call(t, s, "Write", overwrite); (p.Kind() == "write") != c.whole {
			t.Errorf("%s after its cells: %s", c.name, p.Text())
		}
		call(t, s, "Read", map[string]any{"file_path": file, "encoding": "utf-8"})
		if p := call(t, s, "Read", map[string]any{"file_path": file, "encoding": "utf-8", "offset": 2, "column": 1}); strings.Contains(p.Text(), " cut") {
			t.Fatalf("%s: %.200s", c.name, p.Text())
		}
		if p := call(t, s, "Write", overwrite); p.Kind() != "write" {
			t.Errorf("%s after its source: %s", c.name, p.Text())
		}
	}
}
