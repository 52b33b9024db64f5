package config

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"moltisfs/internal/args"
)

// Sandbox is [tools.sandbox].
type Sandbox struct {
	Mode     string   `toml:"mode" enum:"off|all|sessions" doc:"Which calls run in a sandbox: \"off\" none, \"all\" all, \"sessions\" those of the sessions that sessions names."`
	Sessions []string `toml:"sessions" doc:"Globs of sessions, or of PRINCIPAL/SESSION, for mode \"sessions\"."`
	Command  []string `toml:"command" doc:"What runs a program inside: a ready form, as [\"docker:NAME\"], [\"podman:NAME\"], [\"bubblewrap:DIR\"] or [\"ssh:HOST\"]; or a command line without that program, as [\"nsenter\", \"-t\", \"4711\", \"-m\", \"-p\"]. There is no shell. {session} and {principal} stand for who calls, and ${ROOT} for the root on this machine."`
	Root     string   `toml:"root" doc:"The workspace inside: calls name its paths, and nothing outside of it can be touched. ${ROOT} as in command."`
	Require  bool     `toml:"require" doc:"Refuse calls that belong into a sandbox when no real one is found at the start; false has them run on this machine, with a warning at the start. One that fails later is never replaced by this machine."`
}

// Forms are the ready forms of Sandbox.Command: they are followed by a colon and a name.
var Forms = []string{"docker", "podman", "bubblewrap", "ssh"}

// All says that no call runs on this machine. Then workspace_root need not be there.
func (s Sandbox) All() bool { return s.Mode == "all" && s.Require }

// Form is the ready form that command asks for, and the name behind it; "" for neither.
func (s Sandbox) Form() (form, name string) {
	if len(s.Command) != 1 {
		return "", ""
	}
	form, name, _ = strings.Cut(s.Command[0], ":")
	if !slices.Contains(Forms, form) || name == "" || strings.HasPrefix(name, "-") {
		return "", ""
	}
	return form, name
}

func checkSandbox(name string, s Sandbox, add adder) {
	key := "tools.sandbox." + name
	switch name {
	case "mode":
		if s.Mode != "off" && len(s.Command) == 0 {
			add(key, strconv.Quote(s.Mode)+" needs a command", `add command = ["docker:NAME"]`)
		}
		if s.Mode == "sessions" && len(s.Sessions) == 0 {
			add(key, `"sessions" needs sessions, which is empty`, `add sessions = ["…"], or write mode = "all"`)
		}
	case "sessions":
		for i, g := range s.Sessions {
			if _, err := path.Match(g, ""); err != nil || g == "" || strings.TrimSpace(g) != g {
				add(key+"["+strconv.Itoa(i)+"]", "bad glob "+quote(g), `write as "ci/*" or "untrusted-*"`)
			}
		}
	case "command":
		form, name := s.Form()
		for i, word := range s.Command {
			said, rest, colon := strings.Cut(word, ":")
			at := key + "[" + strconv.Itoa(i) + "]"
			switch {
			case word == "" || strings.ContainsRune(word, 0) || strings.TrimSpace(word) != word:
				add(at, quote(word)+" is no word of a command", "")
			case form == "bubblewrap" && name[0] != '/' && !strings.HasPrefix(name, rootVariable):
				add(at, quote(word)+" names no absolute directory", `write as "bubblewrap:/srv/box"`)
			case i == 0 && strings.HasPrefix(word, "-"):
				add(at, quote(word)+" is no program", "")
			case i == 0 && colon && form == "" && !strings.Contains(said, "/"):
				hint := "the ready forms are " + quoted(Forms) + ", each with a colon and a name behind it, " +
					"and no other word"
				if near := args.Nearest(said, Forms); near != "" && near != said {
					hint = "did you mean " + strconv.Quote(near+":"+rest) + "?"
				}
				add(at, quote(word)+" is no ready form", hint)
			}
		}
	case "root":
		if rest, is := strings.CutPrefix(s.Root, rootVariable); is && (rest == "" || rest[0] == '/') {
			return
		}
		if checkRoot(key, s.Root, add); s.Root == "" {
			add(key, "is empty", `write as "/workspace"`)
		} else if form, _ := s.Form(); form == "bubblewrap" && path.Clean(s.Root) == "/" {
			add(key, `bubblewrap: can't put a directory at "/"`, `write as "/workspace"`)
		}
	}
}
