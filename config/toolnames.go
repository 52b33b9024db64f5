package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"moltisfs/internal/args"
)

// toolNames are the tools, of every dialect, that [tools.policy] can mean. They stand here so that a misspelt one is
// found with its line. TestConfigKnowsTheTools compares them with the tools that exist.
var toolNames = []string{
	"Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "Glob", "Grep",
	"checkpoints_list", "checkpoint_diff", "checkpoint_restore",

	"filesystem.read", "filesystem.write", "filesystem.list", "filesystem.delete",
	"filesystem.restore", "filesystem.stat", "filesystem.search", "filesystem.search_content",
	"filesystem.copy", "filesystem.move", "filesystem.watch", "filesystem.append", "filesystem.edit",
	"agent.session", "agent.events", "agent.unwatch", "alerts.send",

	"jettson_files_read", "jettson_files_write", "jettson_files_list", "jettson_files_delete",

	"run_js", "fs.readFile", "fs.writeFile", "fs.appendFile", "fs.readdir", "fs.stat", "fs.mkdir",
	"fs.rm", "fs.rename", "fs.copyFile", "fs.exists",

	"fs/read_text_file", "fs/write_text_file", "terminal/create",
}

// ToolNames are the names that [tools.policy] can mean.
func ToolNames() []string { return slices.Clone(toolNames) }

// namesTool reports whether an entry of [tools.policy], a name or "prefix*", means a tool of ours.
func namesTool(entry string) bool {
	prefix, many := strings.CutSuffix(entry, "*")
	return slices.ContainsFunc(toolNames, func(name string) bool {
		return name == entry || many && strings.HasPrefix(name, prefix)
	})
}

// checkCapabilities finds names that are none, and those that have two tiers.
func checkCapabilities(key string, names []string, tiers map[string]string, add adder) {
	for i, n := range names {
		at := fmt.Sprintf("%s[%d]", key, i)
		dots := slices.DeleteFunc(ToolNames(), func(n string) bool {
			return !strings.Contains(n, ".") || strings.HasPrefix(n, "fs.")
		})
		switch before := tiers[n]; {
		case !slices.Contains(dots, n):
			hint := "name one of " + strings.Join(dots, ", ")
			if near := args.Nearest(n, dots); near != "" {
				hint = "did you mean " + strconv.Quote(near) + "?"
			}
			add(at, strconv.Quote(n)+" is no capability", hint)
		case before != "":
			add(at, strconv.Quote(n)+" stands in "+before+" too", "keep one of them")
		default:
			tiers[n] = key
		}
	}
}

// checkNames finds misspelt names. An unknown name that is close to one of ours is an error,
// because a deny list with a typing mistake denies nothing. Any other unknown name is left to
// Warnings: the list may serve a gateway that has more tools.
func checkNames(key string, names []string, add adder) {
	for i, n := range names {
		at := fmt.Sprintf("%s[%d]", key, i)
		switch star := strings.IndexByte(n, '*'); {
		case n == "":
			add(at, "is empty", "leave it out")
		case strings.ContainsAny(n, " \t\r\n"):
			add(at, strconv.Quote(n)+" holds a blank", "one name an entry")
		case star >= 0 && star < len(n)-1:
			hint := "write " + quote(n[:star+1]) + " or the whole name"
			add(at, strconv.Quote(n)+": a star can only stand at the end", hint)
		case !namesTool(n):
			if near := nearTool(n); near != "" {
				add(at, strconv.Quote(n)+" is no tool", "did you mean "+strconv.Quote(near)+"?")
			}
		}
	}
}

// Warnings lists settings that Check accepts and an operator should know of, in the order of the keys. Locate
// adds where they stand.
func (c Config) Warnings() []*Problem {
	var out []*Problem
	if len(c.foreign) > 0 {
		out = append(out, &Problem{Why: "of Moltis, and without effect here: " +
			strings.Join(c.foreign, ", ")})
		out = append(out, c.Crossing()...)
	}
	fs, p := c.Tools.FS, c.Tools.Policy
	if fs.WorkspaceRoot != "" && len(fs.AllowPaths) == 0 && !c.Tools.Sandbox.All() {
		out = append(out, &Problem{
			Key: "tools.fs.workspace_root",
			Why: "confines nothing while allow_paths is empty: " +
				"the tools reach all that this account can",
			Hint: "add allow_paths = [" + quote(strings.TrimSuffix(fs.WorkspaceRoot, "/")+"/**") + "]",
		})
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"tools.policy.allow", p.Allow}, {"tools.policy.deny", p.Deny}} {
		unknown := slices.DeleteFunc(slices.Clone(list.names), namesTool)
		if len(unknown) > 0 {
			why := "no tools of ours, so without effect here: " + quoted(unknown)
			hint := "ours are " + strings.Join(toolNames, ", ")
			out = append(out, &Problem{Key: list.key, Why: why, Hint: hint})
		}
	}
	return out
}

// nearTool is the tool that an entry of [tools.policy] most likely means: the same but for case and
// separators, without a "file", or one or two edits away. It gives "" when none is close.
func nearTool(entry string) string {
	word, many := strings.CutSuffix(plainName(entry), "*")
	if len(word) > 64 {
		return ""
	}
	best, at := "", 3
	try := func(as, n string) {
		most := allowedEdits(max(len(word), len(n)), many)
		if d := args.Distance(word, n); d < at && d <= most {
			best, at = as, d
		}
	}
	for _, name := range toolNames {
		switch n := plainName(name); {
		case !many && strings.ReplaceAll(strings.ReplaceAll(word, "files", ""), "file", "") == n:
			return name // read_file, as gateways write it
		case !many:
			try(name, n)
		case len(word) >= 3: // compare with the same length of name, give or take a letter
			for i := range name {
				if n := plainName(name[:i+1]); len(n) >= len(word)-1 && len(n) <= len(word)+1 {
					try(name[:i+1]+"*", n)
				}
			}
		}
	}
	return best
}

// allowedEdits is how many edits a name of that length may be away from the one that is meant. A
// prefix is already a guess, so it gets fewer.
func allowedEdits(length int, prefix bool) int {
	switch {
	case length < 4 || prefix && length < 6:
		return 0
	case length < 6 || prefix:
		return 1
	}
	return 2
}

func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}
