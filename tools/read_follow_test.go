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
		overwrite := map[string]any{"file_path": file, "content": "{}", "dry_run": true}
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
