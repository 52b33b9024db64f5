package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"moltisfs/internal/nearest"
)

// toolNames are the tools that [tools.policy] can mean. They stand here so that a misspelt one is found with its line;
// TestConfigKnowsTheTools holds them to those that there are.
var toolNames = []string{
	"Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "Glob", "Grep", "checkpoints_list", "checkpoint_diff", "checkpoint_restore",
}

// ToolNames are the names that [tools.policy] can mean.
func ToolNames() []string { return slices.Clone(toolNames) }

// namesTool reports whether an entry of [tools.policy], a name or "prefix*", means a tool of ours.
func namesTool(entry string) bool {
	prefix, many := strings.CutSuffix(entry, "*")
	return slices.ContainsFunc(toolNames, func(name string) bool { return name == entry || many && strings.HasPrefix(name, prefix) })
}

// checkNames: an entry that means no tool of ours is an error when it is close to one, because a deny list with a slip of the pen
// denies nothing. Another is left to Warnings: the list may serve a gateway that has more tools.
func checkNames(key string, names []string, add adder) {
	for i, n := range names {
		at := fmt.Sprintf("%s[%d]", key, i)
		switch star := strings.IndexByte(n, '*'); {
		case n == "":
			add(at, "is empty", "leave it out")
		case strings.ContainsAny(n, " \t\r\n"):
			add(at, strconv.Quote(n)+" holds a blank", "one name an entry")
		case star >= 0 && star < len(n)-1:
			add(at, strconv.Quote(n)+": a star can only stand at the end", "write "+quote(n[:star+1])+" or the whole name").glob = star + 1
		case !namesTool(n):
			if near := nearTool(n); near != "" {
				add(at, strconv.Quote(n)+" is no tool", "did you mean "+strconv.Quote(near)+"?")
			}
		}
	}
}

// Warnings are what Check lets pass and an operator should know, in the order of the keys. Locate adds where it stands.
func (c Config) Warnings() []*Problem {
	var out []*Problem
	fs, p := c.Tools.FS, c.Tools.Policy
	if fs.WorkspaceRoot != "" && len(fs.AllowPaths) == 0 {
		out = append(out, &Problem{Key: "tools.fs.workspace_root", Why: "confines nothing while allow_paths is empty: the tools reach all that this account can",
			Hint: "add allow_paths = [" + quote(strings.TrimSuffix(fs.WorkspaceRoot, "/")+"/**") + "]"})
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"tools.policy.allow", p.Allow}, {"tools.policy.deny", p.Deny}} {
		strangers := slices.DeleteFunc(slices.Clone(list.names), namesTool)
		if len(strangers) > 0 {
			out = append(out, &Problem{Key: list.key, Why: "no tools of ours, so without effect here: " + quoted(strangers),
				Hint: "ours are " + strings.Join(toolNames, ", ")})
		}
	}
	return out
}

// nearTool is the name that an entry of [tools.policy] most likely means: the same but for case and separators, with a "file" less,
// or one or two edits away. "" when none is close.
func nearTool(entry string) string {
	word, many := strings.CutSuffix(fold(entry), "*")
	if len(word) > 64 {
		return ""
	}
	best, at := "", 3
	try := func(as, n string) {
		if d := nearest.Distance(word, n); d < at && d <= slips(max(len(word), len(n)), many) {
			best, at = as, d
		}
	}
	for _, name := range toolNames {
		switch n := fold(name); {
		case !many && strings.ReplaceAll(strings.ReplaceAll(word, "files", ""), "file", "") == n:
			return name // read_file, as the documentation of gateways has it
		case !many:
			try(name, n)
		case len(word) >= 3: // as much of the name as there is of the prefix, give or take a letter
			for i := range name {
				if n := fold(name[:i+1]); len(n) >= len(word)-1 && len(n) <= len(word)+1 {
					try(name[:i+1]+"*", n)
				}
			}
		}
	}
	return best
}

// slips is how many edits a name of that length may be away from the one that is meant. A prefix is a guess already.
func slips(length int, prefix bool) int {
	switch {
	case length < 4 || prefix && length < 6:
		return 0
	case length < 6 || prefix:
		return 1
	}
	return 2
}

func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}
