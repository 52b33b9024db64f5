package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/tools"
)

func checkpointExportCommand() *command {
	return &command{
		name: "export", short: "write the history as a patch, or as a git repository",
		long: `--patch writes unified diffs of what the calls changed, oldest first, to standard output; git apply takes them in the root directory.
--git makes a bare repository in a directory that does not exist yet: the first commit holds what the files were, and each turn, or call
without a turn, is one more on the branch "checkpoints". It takes the git program. Your own repositories are not touched.`,
		options: storeOptions(
			option{name: "patch", doc: "as unified diffs"},
			option{name: "git", value: "DIR", doc: "as a bare repository"},
			option{name: "turn", value: "NAME", doc: "only of this turn"},
			option{name: "since", value: "TIME", doc: "not before: RFC 3339, or an age like 2h"},
			option{name: "until", value: "TIME", doc: "before"},
		),
		examples: []string{"moltis-fs checkpoint export --session s1 --turn t7 --patch > t7.patch", "moltis-fs checkpoint export --git history.git"},
		run:      exportCheckpoints,
	}
}

func exportCheckpoints(ctx context.Context, in *invocation) error {
	if in.given("patch") == in.given("git") {
		return misuse(seeHelp(in.command), "export needs either --patch or --git")
	}
	f := checkpoint.Filter{Turn: in.option("turn"), NoReads: true, Limit: 1000, Principal: in.option("principal"), Session: in.option("session"), AllSessions: true}
	var err error
	if f.Since, err = in.when("since"); err != nil {
		return err
	}
	if f.Until, err = in.when("until"); err != nil {
		return err
	}
	return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
		ops, err := history(ctx, db, f)
		if err != nil {
			return err
		}
		if len(ops) == 0 && in.count("turn", "since", "until", "session", "principal") > 0 {
			return &exitError{exitRefused, "no change is in what you ask for", program + " checkpoint list shows turns, sessions and times", tools.KindNotFound}
		}
		if in.given("git") {
			return in.exportGit(ctx, db, ops)
		}
		return in.exportPatch(ctx, db, ops)
	})
}

// history lists every checkpoint that took place, oldest first.
func history(ctx context.Context, db *checkpoint.DB, f checkpoint.Filter) ([]checkpoint.Checkpoint, error) {
	var out []checkpoint.Checkpoint
	for {
		page, err := db.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, c := range page.Checkpoints {
			if c.Outcome != checkpoint.Aborted {
				out = append(out, c)
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			slices.Reverse(out)
			return out, nil
		}
	}
}

// contentOf is the content of a state; ok is false where it is not in the store.
func contentOf(ctx context.Context, db *checkpoint.DB, s checkpoint.State) (content []byte, ok bool, err error) {
	switch s.Kind {
	case checkpoint.Symlink:
		return []byte(s.Target), true, nil
	case checkpoint.File:
		content, err = db.Content(ctx, s.Hash)
		if errors.Is(err, checkpoint.ErrSealed) { // half a history would look like a whole one
			return nil, false, misuse("--identity names the file with the key", "%v", err)
		}
		if s.Hash == "" || errors.Is(err, checkpoint.ErrNoContent) {
			return nil, false, nil
		}
		return content, err == nil, err
	}
	return nil, true, nil
}

func (in *invocation) exportPatch(ctx context.Context, db *checkpoint.DB, ops []checkpoint.Checkpoint) error {
	// A patch for git apply, or with --json one object a changed path.
	type patch struct {
		Checkpoint checkpoint.ID `json:"checkpoint"`
		Time       time.Time     `json:"time"`
		Tool       string        `json:"tool"`
		Session    string        `json:"session"`
		Turn       string        `json:"turn,omitempty"`
		Path       string        `json:"path"`
		Patch      string        `json:"patch"`
	}
	patches := []patch{}
	missing := 0
	w := bufio.NewWriter(in.out)
	for i := range ops {
		c := &ops[i]
		for _, ch := range c.Changes {
			if ch.Before.Kind == checkpoint.Dir || ch.After.Kind == checkpoint.Dir {
				continue
			}
			before, ok, err := contentOf(ctx, db, ch.Before)
			if err != nil {
				return err
			}
			after, ok2, err := contentOf(ctx, db, ch.After)
			if err != nil {
				return err
			}
			if !ok || !ok2 || bytes.IndexByte(before, 0) >= 0 || bytes.IndexByte(after, 0) >= 0 {
				missing++
				continue
			}
			if in.given("json") {
				var b strings.Builder
				patchFile(&b, ch.Path, gitMode(ch.Before), gitMode(ch.After), before, after)
				patches = append(patches, patch{c.ID, c.Time.UTC(), first(c.Tool, c.Kind), c.Session, c.Turn, ch.Path, b.String()})
				continue
			}
			fmt.Fprintf(w, "# %s %s %s %s\n", c.ID, c.Time.UTC().Format(time.RFC3339), first(c.Tool, c.Kind), visible(ch.Path))
			patchFile(w, ch.Path, gitMode(ch.Before), gitMode(ch.After), before, after)
		}
	}
	if in.given("json") {
		return writeJSON(in, struct {
			Patches []patch `json:"patches"`
			Missing int     `json:"missing"` // changes whose content is not text, or not in the store
		}{patches, missing})
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the patch: %w", err)
	}
	if missing > 0 {
		fmt.Fprintf(in.err, "%s: %d changes are not in the patch: their content is not text, or not in the store\n", program, missing)
	}
	return nil
}

// patchFile writes how one path changed, as git does it: with its modes, which also tell of files that are empty. A mode of "" is a side without a file.
func patchFile(w io.Writer, path, oldMode, newMode string, before, after []byte) {
	if oldMode != "" && newMode != "" && (oldMode == gitLink) != (newMode == gitLink) { // a link and a file are no versions of one another
		patchFile(w, path, oldMode, "", before, nil)
		patchFile(w, path, "", newMode, nil, after)
		return
	}
	hunks := edit.Patch(before, after)
	if oldMode == newMode && len(hunks) == 0 {
		return
	}
	name := gitPath(path)[1:]
	fmt.Fprintf(w, "diff --git \"a/%s \"b/%s\n", name, name)
	switch {
	case oldMode == newMode:
	case oldMode == "":
		fmt.Fprintf(w, "new file mode %s\n", newMode)
	case newMode == "":
		fmt.Fprintf(w, "deleted file mode %s\n", oldMode)
	default:
		fmt.Fprintf(w, "old mode %s\nnew mode %s\n", oldMode, newMode)
	}
	io.WriteString(w, edit.Unified(filepath.ToSlash(path), edit.EndsOf(oldMode != "", newMode != ""), hunks))
}

const gitLink = "120000"

// gitMode is the mode of what git would store, "" for nothing.
func gitMode(s checkpoint.State) string {
	switch {
	case s.Kind == checkpoint.Symlink:
		return gitLink
	case s.Kind != checkpoint.File:
		return ""
	case s.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

func (in *invocation) exportGit(ctx context.Context, db *checkpoint.DB, ops []checkpoint.Checkpoint) error {
	dir := in.option("git")
	git, err := exec.LookPath("git")
	if err != nil {
		return misuse("install git, or use --patch", "there is no git program")
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return misuse("name one that does not exist yet", "%s is not empty", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return misuse("name a directory that does not exist yet", "%v", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("finding the directory: %w", err)
	}
	run := func(stdin io.Reader, args ...string) error {
		cmd := exec.CommandContext(ctx, git, args...)
		// Neither the operator's repository nor his configuration has a say.
		cmd.Env = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "HOME=" + dir, "PATH=" + in.env("PATH")}
		cmd.Stdin, cmd.Stderr = stdin, in.err
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("git %s: %w", args[len(args)-1], err)
		}
		return nil
	}
	if err := run(nil, "init", "--bare", "--quiet", "--initial-branch=checkpoints", dir); err != nil {
		return err
	}
	r, w := io.Pipe()
	x := &gitExport{ctx: ctx, db: db, w: bufio.NewWriter(w), progress: progressOn(in.err)}
	go func() { w.CloseWithError(x.write(ops)) }()
	err = run(r, "-C", dir, "fast-import", "--quiet")
	r.CloseWithError(err)
	if err != nil {
		return err
	}
	if in.given("json") {
		return writeJSON(in, struct {
			Dir     string `json:"dir"`
			Commits int    `json:"commits"`
			Missing int    `json:"missing"`
		}{dir, x.commits, x.missing})
	}
	return in.write([]byte(fmt.Sprintf("wrote %d commits into %s; %d contents were not in the store\n", x.commits, dir, x.missing)))
}

// gitExport writes the stream that git fast-import reads.
type gitExport struct {
	ctx      context.Context
	db       *checkpoint.DB
	w        *bufio.Writer
	progress func(string, int, int)

	commits, missing int
}

func (x *gitExport) write(ops []checkpoint.Checkpoint) error {
	if err := x.origin(ops); err != nil {
		return err
	}
	for i := 0; i < len(ops); {
		n := i + 1
		for n < len(ops) && ops[i].Turn != "" && ops[n].Turn == ops[i].Turn && ops[n].Session == ops[i].Session && ops[n].Principal == ops[i].Principal {
			n++
		}
		if err := x.commit(ops[i:n]); err != nil {
			return err
		}
		if x.progress != nil {
			x.progress("exporting", n, len(ops))
		}
		i = n
	}
	x.w.WriteString("done\n")
	return x.w.Flush()
}

// origin is the commit of what every path was before its first change.
func (x *gitExport) origin(ops []checkpoint.Checkpoint) error {
	if len(ops) == 0 {
		return nil
	}
	x.w.WriteString("feature done\n")
	x.header("before the first checkpoint", "", ops[0].Time)
	seen := map[string]bool{}
	for i := range ops {
		for _, ch := range ops[i].Changes {
			if !seen[ch.Path] {
				seen[ch.Path] = true
				if err := x.put(ch.Path, ch.Before, false); err != nil {
					return err
				}
			}
		}
	}
	x.w.WriteByte('\n')
	return nil
}

func (x *gitExport) header(subject, body string, t time.Time) {
	x.commits++
	message := subject + "\n" + body
	fmt.Fprintf(x.w, "commit refs/heads/checkpoints\ncommitter moltis-fs <moltis-fs@localhost> %d +0000\ndata %d\n%s\n", t.Unix(), len(message), message)
}

func (x *gitExport) commit(ops []checkpoint.Checkpoint) error {
	c := &ops[0]
	subject := first(c.Tool, c.Kind) + " " + pathsOf(c)
	if len(ops) > 1 {
		subject = fmt.Sprintf("turn %s: %d calls", c.Turn, len(ops))
	}
	var trailers strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&trailers, "%s: %s\n", name, visible(value))
		}
	}
	line("\nPrincipal", c.Principal)
	line("Session", c.Session)
	line("Turn", c.Turn)
	for i := range ops {
		line("Checkpoint", string(ops[i].ID)+" "+first(ops[i].Tool, ops[i].Kind))
	}
	x.header(strings.ReplaceAll(subject, "\n", " "), trailers.String(), ops[len(ops)-1].Time)
	for i := range ops {
		for _, ch := range ops[i].Changes {
			if err := x.put(ch.Path, ch.After, true); err != nil {
				return err
			}
		}
	}
	x.w.WriteByte('\n')
	return nil
}

// put writes one path. What is absent is only removed where it may be there.
func (x *gitExport) put(path string, s checkpoint.State, remove bool) error {
	name := gitPath(path)
	switch s.Kind {
	case checkpoint.Dir:
		return nil
	case checkpoint.Absent, "":
		if remove {
			fmt.Fprintf(x.w, "D %s\n", name)
		}
		return nil
	}
	content, ok, err := contentOf(x.ctx, x.db, s)
	if err != nil {
		return err
	}
	if !ok {
		x.missing++
		return nil
	}
	fmt.Fprintf(x.w, "M %s inline %s\ndata %d\n", gitMode(s), name, len(content))
	x.w.Write(content)
	return x.w.WriteByte('\n')
}

// gitPath is the path below the root, quoted as git does it.
func gitPath(path string) string {
	path = strings.TrimLeft(filepath.ToSlash(path), "/")
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
