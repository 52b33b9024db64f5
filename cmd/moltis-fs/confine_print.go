package main

import (
	"fmt"
	"strings"

	"moltisfs/internal/confine"
)

// profile is what the plan would be for another program that confines.
func (h *held) profile(what string, args []string) string {
	var b strings.Builder
	if what == "rules" {
		for _, r := range h.Rules {
			fmt.Fprintf(&b, "%-7s %s\n", rightName(r.Right), visible(r.Path))
		}
		for _, r := range h.Shut {
			fmt.Fprintf(&b, "%-7s %s\n", "no "+rightName(r.Right), visible(r.Path))
		}
		for _, dir := range h.Frozen {
			fmt.Fprintf(&b, "%-7s %s: nothing new\n", "no new", visible(dir))
		}
		for _, less := range h.unheld() {
			fmt.Fprintf(&b, "not held: %s\n", visible(less))
		}
		return b.String()
	}
	if h.cfg.Tools.FS.HasPolicies() {
		fmt.Fprintf(&b, "# not held: %s\n", unasked)
	}
	if !h.cfg.Tools.FS.ReadOnly { // a profile closes what is there, and freezes no directory
		for _, rule := range patterns(h.cfg.Tools.FS) {
			fmt.Fprintf(&b, "# not held for names that come later: %s\n", visible(rule))
		}
	}
	if what == "systemd" {
		h.systemd(&b)
	} else {
		h.bwrap(&b, args)
	}
	return b.String()
}

func rightName(r confine.Right) string {
	return [...]string{"", "list", "read", "write", "device"}[r]
}

// besides are the rules that are not of the roots: of the system, and of the operator's options.
func (h *held) besides() (out []confine.Rule) {
	for _, r := range h.Rules {
		if (r.ID.Ino == 0 || r.Path == confine.Settings) && r.Right != confine.Device && r.Path != "/proc" {
			out = append(out, r)
		}
	}
	return out
}

func (h *held) bwrap(b *strings.Builder, args []string) {
	b.WriteString("bwrap")
	add := func(option string, paths ...string) {
		b.WriteString(" \\\n  " + option)
		for _, p := range paths {
			b.WriteString(" " + shellWord(p))
		}
	}
	for _, o := range []string{"--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc"} {
		add(o)
	}
	if !h.network {
		add("--unshare-net")
	}
	add("--tmpfs", "/tmp") // what follows may lie in it
	for _, r := range h.besides() {
		how := "--ro-bind-try"
		if r.Right == confine.Write {
			how = "--bind-try"
		}
		add(how, r.Path, r.Path)
	}
	add("--dev", "/dev")
	add("--proc", "/proc")
	for _, root := range h.roots {
		if h.cfg.Tools.FS.ReadOnly {
			add("--ro-bind", root, root)
		} else {
			add("--bind", root, root)
		}
	}
	for _, r := range h.Shut {
		switch {
		case r.Right == confine.Write:
			add("--ro-bind", r.Path, r.Path)
		case r.Dir:
			add("--tmpfs", r.Path)
		default:
			add("--ro-bind", "/dev/null", r.Path)
		}
	}
	add("--chdir", h.roots[0])
	if len(args) == 0 {
		args = []string{"sh"}
	}
	add("--", args...)
	b.WriteByte('\n')
}

func (h *held) systemd(b *strings.Builder) {
	b.WriteString("[Service]\nNoNewPrivileges=yes\nPrivateTmp=yes\nPrivateDevices=yes\n" +
		"ProtectProc=invisible\nRestrictNamespaces=yes\nTemporaryFileSystem=/:ro\n")
	if h.network {
		b.WriteString("RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n")
	} else {
		b.WriteString("PrivateNetwork=yes\nRestrictAddressFamilies=AF_UNIX\n")
	}
	line := func(key, path string) {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(path)
		if strings.HasPrefix(key, "Bind") { // what follows a colon is another path
			quoted = strings.ReplaceAll(quoted, ":", `\:`)
		}
		fmt.Fprintf(b, "%s=\"%s\"\n", key, quoted)
	}
	for _, r := range h.besides() {
		key := "BindReadOnlyPaths"
		if r.Right == confine.Write {
			key = "BindPaths"
		}
		line(key, "-"+r.Path)
	}
	for _, root := range h.roots {
		if h.cfg.Tools.FS.ReadOnly {
			line("BindReadOnlyPaths", root)
		} else {
			line("BindPaths", root)
		}
	}
	for _, r := range h.Shut {
		if r.Right == confine.Write {
			line("ReadOnlyPaths", "-"+r.Path)
		} else {
			line("InaccessiblePaths", "-"+r.Path)
		}
	}
	// The one path that systemd takes as it stands, to the end of the line.
	fmt.Fprintf(b, "WorkingDirectory=%s\n", strings.ReplaceAll(h.roots[0], "%", "%%"))
}
