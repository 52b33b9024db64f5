package mcp_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/dialect/capability"
	"moltisfs/internal/dialect/jettson"
	"moltisfs/internal/serve/mcp"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// TestPages has clients read, search and list more than they show, in each dialect: an answer fits its client, says that it is not all, and
// leads to the rest.
func TestPages(t *testing.T) {
	root := toolstest.Tree(t)
	var want strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&want, "%04d \"quoted\"\tand \\ é\n", i)
	}
	long := file(t, root, "long.txt", want.String())
	for i := range 300 {
		file(t, root, fmt.Sprintf("%080d.go", i), "needle \"in\" a file\n")
	}
	cfg := config.Default()
	cfg.Tools.FS.WorkspaceRoot = root
	cfg.Tools.FS.AllowPaths = []string{root + "/**"}
	e, err := tools.OpenEngine(cfg, tools.Options{DataDir: filepath.Join(t.TempDir(), "data")}, nil, nil)
	must(t, err)
	defer e.Close()
	byCapability, err := capability.Over(e, cfg.Tools.Capability)
	must(t, err)
	byJettson, err := jettson.Over(e, cfg.Tools.Jettson)
	must(t, err)
	all := dialect.Join(tools.Over(e).Dialect(), byCapability, byJettson)
	for _, c := range []struct {
		client string
		most   int // characters of the text as a JSON string, or with raw of the text
		raw    bool
	}{
		{"somebody", 7_900, false}, {"@cline/core", 7_900, false}, {"continue-cli-client", 7_900, false}, {"copilot-cli", 19_500, true},
		{"qwen-cli-mcp-client-files", 24_500, true}, {"codex-mcp-client", 11_000, true}, {"gemini-cli-mcp-client", 39_000, true},
	} {
		toServer, fromServer := serveDialect(t, all, mcp.Options{})
		s := connect(t, toServer, fromServer, c.client, "2025-11-25", nil)
		said := func(tool string, args map[string]any) string {
			r := call(t, s, tool, args)
			text := textOf(t, r)
			shown, _ := json.Marshal(text)
			n := len(shown)
			if c.raw {
				n = len(text)
			}
			if r.IsError || n > c.most || n < c.most/3 {
				t.Errorf("%s: %s %v: %d bytes, of %d that it shows\n%.200s", c.client, tool, args, n, c.most, text)
			}
			if strings.Contains(text, `"truncated":false`) {
				t.Errorf("%s: %s says that it is all", c.client, tool)
			}
			return text
		}
		for _, one := range []struct {
			tool string
			args map[string]any
			says string
		}{
			{"Read", map[string]any{"file_path": long}, "go on with offset"},
			{"Glob", map[string]any{"pattern": "**"}, "go on with offset"},
			{"Grep", map[string]any{"pattern": "needle", "output_mode": "content", "head_limit": 0}, "go on with offset"},
			{"Grep", map[string]any{"pattern": "needle", "head_limit": 0}, "go on with offset"},
			{"filesystem__list", map[string]any{"path": root}, `"left_out":`},
			{"filesystem__search", map[string]any{"path": root, "pattern": "*", "max_results": 1000}, `"truncated":true`},
			{"filesystem__search_content", map[string]any{"path": root, "pattern": "needle", "max_results": 200}, `"truncated":true`},
			{"filesystem__search_content", map[string]any{"path": root, "pattern": "needle", "max_results": 200, "files_only": true}, `"truncated":true`},
			{"jettson_files_read", map[string]any{"path": "long.txt"}, `"truncated":true`},
			{"jettson_files_list", map[string]any{}, `"left_out":`},
		} {
			if c.most > 30_000 && strings.Contains(one.tool, "search_content") || c.most > 20_000 && one.args["pattern"] == "needle" || c.most > 24_000 && one.tool != "Read" {
				continue // all of it fits
			}
			if text := said(one.tool, one.args); !strings.Contains(text, one.says) {
				t.Errorf("%s: %s %v does not say %s: …%s", c.client, one.tool, one.args, one.says, text[max(0, len(text)-200):])
			}
		}
		whole, offset := "", int64(0)
		for range 100 { // following the answers shows all
			var a struct {
				Data struct {
					Content   string
					Truncated bool
					Next      int64 `json:"next_offset"`
				}
			}
			r := call(t, s, "filesystem__read", map[string]any{"path": long, "offset": offset})
			must(t, json.Unmarshal([]byte(textOf(t, r)), &a))
			whole += a.Data.Content
			if offset = a.Data.Next; !a.Data.Truncated {
				break
			}
		}
		if whole != want.String() {
			t.Errorf("%s: %d bytes of %d by following next_offset", c.client, len(whole), want.Len())
		}
	}
}

// TestImagesAreNeverText has clients read an image: no client gets base64 that it may write out as text, and is told so.
func TestImagesAreNeverText(t *testing.T) {
	root := toolstest.Tree(t)
	var b bytes.Buffer
	must(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 30))))
	pic := file(t, root, "p.png", b.String())
	for _, c := range []struct {
		client string
		mode   mcp.Structured
		shown  bool
	}{
		{"somebody", "", false}, {"@cline/core", "", false}, {"continue-cli-client", "", false}, {"copilot-cli", "", false}, {"claude-code", "", true},
		{"claude-ai (via mcp-remote 0.15.1)", "", true}, {"somebody", mcp.StructuredAlways, true}, {"test", "", true},
	} {
		s := start(t, config.Default(), tools.Options{}, mcp.Options{Structured: c.mode}, c.client, "2025-11-25", nil)
		r := call(t, s, "Read", map[string]any{"file_path": pic})
		all := string(mustJSON(t, r))
		_, last := r.Content[len(r.Content)-1].(*sdk.ImageContent)
		if last != c.shown || strings.Contains(all, base64.StdEncoding.EncodeToString(b.Bytes())) != c.shown ||
			strings.Contains(all, "is not sent") == c.shown || !strings.Contains(all, "40 x 30") {
			t.Errorf("%s %s: %s", c.client, c.mode, all)
		}
	}
}
