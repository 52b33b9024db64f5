package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"

	"moltisfs/internal/engine"
	"moltisfs/internal/glob"
)

func initCommand() *command {
	var names []string
	for _, c := range clients() {
		names = append(names, c.name)
	}
	write := many("write", "CLIENT", "put the entry into this client's file, with a backup beside it")
	write.words = names
	return &command{
		name: "init", args: "[DIR]", max: 1, run: runInit,
		short: "open a directory, switch undo on, set up a client",
		long: `It writes a configuration in which DIR (default: the working directory) is open and undo is on, and shows
the entry for each client that it finds on this machine. A configuration that is there already is left as it is.

--write puts the entry into the client's file. Other entries and comments there stay as they are, and the
file as it was is kept beside it, as FILE` + backupSuffix + `.

--undo takes the entries out again, and the configuration if nobody has changed it.`,
		options: options("json config", write, opt("undo", "", "take out what init put there")),
		examples: []string{"moltis-fs init", "moltis-fs init ~/project --write cursor --write claude-code",
			"moltis-fs init --undo"},
	}
}

// A client starts our MCP server by an entry in a file of its own.
type client struct {
	name  string
	seen  []string // programs in the PATH and paths from the home directory that show that it is installed
	file  string   // from the project's root, or with ~ from the home directory
	key   string   // of the object that has an entry for each server
	own   bool     // it is started without the PATH of a shell: our program is named in full
	root  string   // what --root is; "": the project's absolute path
	asks  bool     // it can ask its user with the diff; else its own question has to do
	mixes bool     // it does not keep the tools of a server apart from its own of the same names: ours get a prefix
	shape string   // "command": command and args are one list; "toml": the file is TOML
	more  entry    // what its entry has besides
}

// clients lists the clients that init knows. docs/clients.md has the same entries.
func clients() []client {
	desktop := "~/.config/Claude/claude_desktop_config.json"
	switch runtime.GOOS {
	case "darwin":
		desktop = "~/Library/Application Support/Claude/claude_desktop_config.json"
	case "windows":
		desktop = "~/AppData/Roaming/Claude/claude_desktop_config.json"
	}
	return []client{
		{name: "claude-code", seen: []string{"claude", "~/.claude"}, file: ".mcp.json", key: "mcpServers", root: ".", asks: true},
		{name: "claude-desktop", seen: []string{filepath.Dir(desktop)}, file: desktop, key: "mcpServers", own: true},
		{name: "codex", seen: []string{"codex", "~/.codex"}, file: "~/.codex/config.toml", key: "mcp_servers", asks: true, shape: "toml"},
		{name: "cursor", seen: []string{"cursor", "~/.cursor"}, file: ".cursor/mcp.json", key: "mcpServers", own: true, asks: true},
		{name: "vscode", seen: []string{"code", "~/.vscode", "~/.config/Code"}, file: ".vscode/mcp.json", key: "servers", own: true,
			root: "${workspaceFolder}", asks: true},
		{name: "gemini-cli", seen: []string{"gemini", "~/.gemini"}, file: ".gemini/settings.json", key: "mcpServers"},
		{name: "opencode", seen: []string{"opencode", "~/.config/opencode"}, file: "opencode.json", key: "mcp", root: ".", shape: "command"},
		{name: "qwen-code", seen: []string{"qwen", "~/.qwen"}, file: "~/.qwen/settings.json", key: "mcpServers", more: entry{Always: true}},
		{name: "copilot-cli", seen: []string{"copilot", "~/.copilot"}, file: "~/.copilot/mcp-config.json", key: "mcpServers", asks: true,
			more: entry{Type: "local", Tools: []string{"*"}}},
		{name: "cline", seen: []string{"cline", "~/.cline"}, file: "~/.cline/data/settings/cline_mcp_settings.json", key: "mcpServers"},
		{name: "continue", seen: []string{"cn", "~/.continue"}, file: ".continue/mcpServers/files.json", key: "mcpServers", mixes: true},
		{name: "kiro", seen: []string{"kiro", "kiro-cli", "~/.kiro"}, file: ".kiro/settings/mcp.json", key: "mcpServers", mixes: true},
		{name: "kimi-cli", seen: []string{"kimi", "~/.kimi"}, file: "~/.kimi/mcp.json", key: "mcpServers", mixes: true},
		{name: "zed", seen: []string{"zed", "~/.config/zed"}, file: "~/.config/zed/settings.json", key: "context_servers", own: true},
	}
}

const (
	entryName    = "files" // of our server in a client's file
	backupSuffix = ".before-moltis-fs"
	initMark     = "# Written by moltis-fs init."
)

// A setUp is the entry of one client.
type setUp struct {
	Client  string `json:"client"`
	File    string `json:"file"`
	Entry   string `json:"entry"`
	Written bool   `json:"written"`
	Removed bool   `json:"removed,omitempty"`
}

func runInit(_ context.Context, in *invocation) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return misuse("set HOME", "there is no home directory: %v", err)
	}
	root, err := filepath.Abs(cmp.Or(in.arg(0), "."))
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if info, serr := os.Stat(root); err != nil || serr != nil || !info.IsDir() {
		return misuse("name a directory that exists", "%s is not a directory", visible(cmp.Or(in.arg(0), ".")))
	}
	file := cmp.Or(in.option("config"), in.configPlace())
	if in.given("undo") {
		return in.undoInit(file, root, home)
	}
	if what := tooWide(root); what != "" {
		return misuse("name the directory of your work: "+program+" init ~/project", "the directory is %s", what)
	}
	made, err := in.writeConfig(file, root)
	if err != nil {
		return err
	}
	self, err := ownProgram()
	if err != nil {
		return err
	}
	closed := ""
	if !made {
		if cfg, _, err := in.loadConfig(file); err == nil {
			closed, _ = engine.RuleOf(cfg.Tools.FS, "", filepath.Join(root, "a file"), true) // a faulty configuration is for config check
		}
	}
	var all []setUp
	for _, c := range clients() {
		chosen := slices.Contains(in.all("write"), c.name)
		if !chosen && (in.given("write") || !c.installed(home)) {
			continue
		}
		s := setUp{Client: c.name, File: c.path(root, home), Entry: c.text(self, root)}
		if chosen {
			if err := c.write(s.File, self, root); err != nil {
				return err
			}
			s.Written = true
		}
		all = append(all, s)
	}
	return in.answer(struct {
		Config  string  `json:"config"`
		Made    bool    `json:"made"` // false: it was there
		Root    string  `json:"root"`
		Clients []setUp `json:"clients"`
	}{file, made, root, list(all)}, "%s", initText(file, made, root, closed, all))
}

func initText(file string, made bool, root, closed string, all []setUp) string {
	var b strings.Builder
	switch {
	case closed != "":
		fmt.Fprintf(&b, "kept %s, which was there already and closes %s, by %s: add %q to its allow_paths\n", visible(file), visible(root),
			closedBy(closed), glob.Literal(filepath.ToSlash(root))+"/**")
	case made:
		fmt.Fprintf(&b, "wrote %s\nopen: %s and nothing else; each change is asked about; undo: on\n", visible(file), visible(root))
	default:
		fmt.Fprintf(&b, "kept %s, which was there already; %s status says what holds\n", visible(file), program)
	}
	for _, s := range all {
		if s.Written {
			fmt.Fprintf(&b, "\n%s: wrote the entry %q into %s\n", s.Client, entryName, visible(s.File))
		} else {
			fmt.Fprintf(&b, "\n%s: %s would get this from %s init --write %s\n%s\n", s.Client, visible(s.File), program, s.Client, s.Entry)
		}
	}
	if len(all) == 0 {
		fmt.Fprintf(&b, "\nno client was found here; %s init --write CLIENT sets one up all the same\n", program)
	}
	return b.String()
}

// configFor is the configuration that init writes for a root.
func configFor(root string) []byte {
	return fmt.Appendf(nil, initMark+` "moltis-fs config example" shows every key.

[tools.fs]
workspace_root = %q
allow_paths = [%q]
checkpoint_before_mutation = true # so that every change can be undone
`, root, glob.Literal(filepath.ToSlash(root))+"/**")
}

// writeConfig writes the configuration, unless there is one.
func (in *invocation) writeConfig(file, root string) (made bool, err error) {
	if file == "" {
		return false, misuse("name one with --config", "there is no place for a configuration")
	}
	if _, err := os.Lstat(file); err == nil {
		return false, nil
	}
	if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
		err = replaceFile(file, configFor(root), 0o600)
	}
	return err == nil, err
}

// undoInit takes the entries out of the clients' files, and removes the configuration if it is as init wrote it.
func (in *invocation) undoInit(file, root, home string) error {
	var all []setUp
	for _, c := range clients() {
		path := c.path(root, home)
		removed, err := c.remove(path)
		if err != nil {
			return err
		}
		if removed {
			all = append(all, setUp{Client: c.name, File: path, Removed: true})
		}
	}
	text, err := os.ReadFile(file)
	own := struct {
		Tools struct {
			FS struct {
				Root string `toml:"workspace_root"`
			} `toml:"fs"`
		} `toml:"tools"`
	}{}
	gone := false
	if _, derr := toml.Decode(string(text), &own); err == nil && derr == nil && bytes.Equal(text, configFor(own.Tools.FS.Root)) {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("removing the configuration: %w", err)
		}
		gone = true
	}
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "%s: took the entry %q out of %s\n", s.Client, entryName, visible(s.File))
	}
	switch {
	case gone:
		fmt.Fprintf(&b, "removed %s\n", visible(file))
	case err == nil:
		fmt.Fprintf(&b, "kept %s: it is not as init wrote it\n", visible(file))
	case len(all) == 0:
		b.WriteString("there is nothing to take out\n")
	}
	return in.answer(struct {
		Config  string  `json:"config"`
		Removed bool    `json:"removed"`
		Clients []setUp `json:"clients"`
	}{file, gone, list(all)}, "%s", b.String())
}

func (c *client) installed(home string) bool {
	return slices.ContainsFunc(c.seen, func(s string) bool {
		if rest, ok := strings.CutPrefix(s, "~/"); ok {
			_, err := os.Stat(filepath.Join(home, rest))
			return err == nil
		}
		_, err := exec.LookPath(s)
		return err == nil
	})
}

func (c *client) path(root, home string) string {
	if rest, ok := strings.CutPrefix(c.file, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return filepath.Join(root, c.file)
}

// An entry is our server as a client's file has it.
type entry struct {
	Type    string   `json:"type,omitempty" toml:"type,omitempty"`
	Command any      `json:"command" toml:"command"` // the program, or a list with its arguments
	Args    []string `json:"args,omitempty" toml:"args,omitempty"`
	Enabled bool     `json:"enabled,omitempty" toml:"enabled,omitempty"`
	Approve string   `json:"default_tools_approval_mode,omitempty" toml:"default_tools_approval_mode,omitempty"`
	Tools   []string `json:"tools,omitempty" toml:"tools,omitempty"`
	Always  bool     `json:"alwaysLoadTools,omitempty" toml:"alwaysLoadTools,omitempty"` // else the model has to search for them
}

func (c *client) entry(self, root string) entry {
	name := self
	if by := startedAs(self); !c.own && by != "" && by != self {
		name = filepath.Base(by)
	}
	args := []string{"mcp", "--root", cmp.Or(c.root, root)}
	if !c.asks {
		args = append(args, "--approve", "yes")
	}
	if c.mixes {
		args = append(args, "--tool-prefix", "files_")
	}
	switch c.shape {
	case "command":
		return entry{Type: "local", Command: append([]string{name}, args...), Enabled: true}
	case "toml":
		return entry{Command: name, Args: args, Approve: "approve"}
	}
	e := c.more
	e.Command, e.Args = name, args
	return e
}

// text gives the entry with the key above it, as a file that has nothing else.
func (c *client) text(self, root string) string {
	all := map[string]map[string]entry{c.key: {entryName: c.entry(self, root)}}
	var b bytes.Buffer
	if c.shape == "toml" {
		enc := toml.NewEncoder(&b)
		enc.Indent = ""
		_ = enc.Encode(all) // it is always TOML
		_, own, _ := strings.Cut(b.String(), "["+c.key+"]\n")
		return strings.TrimSpace(own)
	}
	text, _ := encoded(all, "  ") // it is always JSON
	return strings.TrimSpace(string(text))
}

// write puts the entry into the client's file. It refuses where another server has its name.
func (c *client) write(path, self, root string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return misuse("make it readable, or add the entry by hand", "reading %s: %v", visible(path), err)
	}
	ours, taken, bad := c.has(old)
	switch {
	case bad != nil:
		return misuse("mend it, or add the entry by hand", "%s can't be read: %v", visible(path), bad)
	case taken && !ours:
		return misuse("rename that entry, or add ours by hand under another name", "%s has another server called %q", visible(path), entryName)
	}
	next, err := c.with(old, self, root)
	if err != nil {
		return misuse("mend it, or add the entry by hand", "%s can't take the entry: %v", visible(path), err)
	}
	if bytes.Equal(next, old) {
		return nil
	}
	if old != nil && !ours {
		if err := replaceFile(path+backupSuffix, old, 0o600); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the directory of %s: %w", path, err)
	}
	return replaceFile(path, next, 0o600)
}

// remove takes our entry out of the client's file. Where the file would be as before init it is, to the byte.
func (c *client) remove(path string) (removed bool, err error) {
	old, err := os.ReadFile(path)
	if err != nil {
		return false, nil
	}
	if ours, _, bad := c.has(old); !ours || bad != nil {
		return false, nil
	}
	next, err := c.without(old)
	if err != nil {
		return false, err
	}
	before, berr := os.ReadFile(path + backupSuffix)
	switch empty, _ := c.without([]byte(c.text("", ""))); {
	case berr == nil && sameJSON(before, next):
		next = before
	case berr != nil && sameJSON(next, empty):
		return true, os.Remove(path) // init made it
	}
	if err := replaceFile(path, next, 0o600); err != nil {
		return false, err
	}
	_ = os.Remove(path + backupSuffix) // it may not be there
	return true, nil
}

// has says whether a client's file has a server of our name, and whether that is ours: it is started as "mcp --root …".
func (c *client) has(text []byte) (ours, taken bool, err error) {
	var all map[string]any
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return false, false, nil
	case c.shape == "toml":
		_, err = toml.Decode(string(text), &all)
	default:
		if text, err = hujson.Standardize(bytes.Clone(text)); err == nil {
			err = json.Unmarshal(text, &all)
		}
	}
	if err != nil {
		return false, false, err
	}
	servers, _ := all[c.key].(map[string]any)
	own, taken := servers[entryName].(map[string]any)
	args, _ := own["args"].([]any)
	if list, ok := own["command"].([]any); ok && len(list) > 0 {
		args = list[1:]
	}
	return len(args) > 1 && args[0] == "mcp" && args[1] == "--root", taken, nil
}

// with gives the client's file with our entry, in the place of one that is there.
func (c *client) with(text []byte, self, root string) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return []byte(c.text(self, root) + "\n"), nil
	}
	if c.shape == "toml" {
		text, err := c.without(text)
		return []byte(strings.TrimRight(string(text), "\n") + "\n\n" + c.text(self, root) + "\n"), err
	}
	v, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	if v.Find("/"+c.key) == nil {
		if err := add(&v, "", c.key, struct{}{}, "  "); err != nil {
			return nil, err
		}
	}
	err = add(&v, "/"+c.key, entryName, c.entry(self, root), "    ")
	return v.Pack(), err
}

// add puts a member at the end of the object at a JSON pointer, on a line of its own, indented as its neighbours or by indent. One of that
// name that is there gets the value.
func add(v *hujson.Value, at, name string, value any, indent string) error {
	object, ok := v.Find(at).Value.(*hujson.Object)
	if !ok {
		return fmt.Errorf("%q is no object", at)
	}
	// what stands before the closing brace: comments stay, and the brace keeps its place
	before := string(object.AfterExtra)
	end := strings.LastIndexByte(before, '\n') + 1
	closing := before[end:]
	if end == 0 {
		closing = strings.TrimSuffix(indent, "  ")
	}
	if len(object.Members) > 0 {
		if first := string(object.Members[0].Name.BeforeExtra); strings.Contains(first, "\n") {
			indent = first[strings.LastIndexByte(first, '\n')+1:]
		}
	}
	text, err := json.MarshalIndent(value, indent, "  ")
	if err != nil {
		return err
	}
	parsed, err := hujson.Parse(text)
	if err != nil {
		return err
	}
	if there := v.Find(at + "/" + name); there != nil {
		there.Value = parsed.Value
		return nil
	}
	object.Members = append(object.Members, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: hujson.Extra(strings.TrimRight(before, " \t\n") + "\n" + indent), Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: parsed.Value},
	})
	object.AfterExtra = hujson.Extra("\n" + closing)
	return nil
}

// without gives the client's file without our entry.
func (c *client) without(text []byte) ([]byte, error) {
	if _, taken, err := c.has(text); err != nil || !taken {
		return text, err
	}
	if c.shape == "toml" {
		var kept []string
		inside := false
		for line := range strings.Lines(string(text)) {
			if head := strings.TrimSpace(line); strings.HasPrefix(head, "[") {
				inside = head == "["+c.key+"."+entryName+"]" || strings.HasPrefix(head, "["+c.key+"."+entryName+".")
			}
			if !inside {
				kept = append(kept, line)
			}
		}
		return []byte(strings.TrimRight(strings.Join(kept, ""), "\n") + "\n"), nil
	}
	v, err := hujson.Parse(text)
	if err == nil {
		err = v.Patch(fmt.Appendf(nil, `[{"op": "remove", "path": "/%s/%s"}]`, c.key, entryName))
	}
	return v.Pack(), err
}

// sameJSON says whether two files say the same, however they are set; of what is no JSON, whether the bytes are the same.
func sameJSON(a, b []byte) bool {
	a, aerr := hujson.Minimize(bytes.Clone(a))
	b, berr := hujson.Minimize(bytes.Clone(b))
	if aerr != nil || berr != nil {
		return bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b))
	}
	return bytes.Equal(a, b)
}

// replaceFile gives a file new content in one step. A link is followed, and the mode of a file that is there is kept.
func replaceFile(path string, content []byte, mode fs.FileMode) (err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".moltis-fs-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the error of writing says more
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
