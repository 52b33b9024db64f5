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
	"checkpoints_list", "checkpoint_diff", "checkpoint_restore", "Bash", "BashOutput", "KillShell",

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
		unknown := slices.DeleteFunc(slices.Clone(list.names), func(n string) bool {
			return namesTool(n) || n == "exec" && c.Tools.Run.Enabled
		})
		if len(unknown) > 0 {
			why := "no tools of ours, so without effect here: " + quoted(unknown)
			hint := "ours are " + strings.Join(toolNames, ", ")
			out = append(out, &Problem{Key: list.key, Why: why, Hint: hint})
		}
	}
	return out
}

// nearTool is the tool that a name in [tools.policy] most likely means; "" when none is close, as of "NotebookRead".
func nearTool(name string) string {
	near := args.Nearest(name, toolNames)
	if args.Distance(strings.ToLower(name), strings.ToLower(near)) > 2 {
		return ""
	}
	return near
}
