package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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
		long: `--patch writes to standard output what the calls made of each path, with --json each call's share of it: git apply takes it, git apply -R takes it
back. Paths are relative to --root; else to the git repository that you are in, the directory that you are in or the workspace_root, whichever is the first to hold every path; else
to the root directory. The first line says to which. What is outside of --root is left out, and so are paths that git refuses (.git is one, by whatever
name) and what the store does not hold; all of that is said.
--git makes a bare repository in a directory that does not exist yet: the first commit holds what the files were, and each turn, or call
without a turn, is one more on the branch "checkpoints", with paths relative to --root, else to the root directory. It takes the git program. Your own repositories are not
touched.`,
		options: storeOptions(append(whose(),
			option{name: "patch", doc: "as diffs for git apply, binary ones too"},
			option{name: "git", value: "DIR", doc: "as a bare repository"},
			option{name: "root", value: "DIR", doc: "only what is below, and paths relative to it"},
			option{name: "turn", value: "NAME", doc: "only of this turn"},
			option{name: "since", value: "TIME", doc: "not before: RFC 3339, or an age like 2h"},
			option{name: "until", value: "TIME", doc: "before"},
			identityOption(),
		)...),
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
		root, err := in.exportRoot(ops)
		if err != nil {
			return err
		}
		return in.exportPatch(ctx, db, ops, root)
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

// A leftOut is a change that a patch has not.
type leftOut struct {
	Checkpoint checkpoint.ID `json:"checkpoint"`
	Path       string        `json:"path"`
	Why        string        `json:"why"`
}

// A series is a path with changes of it that follow on one another, so that they can be told as one: of a path that comes twice, git apply loses
// that it was created or removed.
type series struct {
	by     []*checkpoint.Checkpoint
	change checkpoint.Recorded // from before the first to after the last
}

// seriesOf are in the order in which they began. With each set, every change is one.
func seriesOf(ops []checkpoint.Checkpoint, each bool) []*series {
	var out []*series
	at := map[string]*series{}
	for i := range ops {
		c := &ops[i]
		for _, ch := range c.Changes {
			if r := at[ch.Path]; r != nil && !each && r.change.After.Same(ch.Before) {
				r.by, r.change.After = append(r.by, c), ch.After
				continue
			}
			at[ch.Path] = &series{[]*checkpoint.Checkpoint{c}, ch}
			out = append(out, at[ch.Path])
		}
	}
	return out
}

// exportPatch writes a patch for git apply.
func (in *invocation) exportPatch(ctx context.Context, db *checkpoint.DB, ops []checkpoint.Checkpoint, root string) error {
	if in.given("json") {
		return in.exportPatches(ctx, db, ops, root)
	}
	left := map[string]int{}
	w := bufio.NewWriter(in.out)
	fmt.Fprintf(w, "# paths are relative to %s\n", visible(root))
	for _, r := range seriesOf(ops, false) {
		p, why, err := patchOf(ctx, db, &r.change, root)
		if err != nil {
			return err
		}
		if p == nil && why == "" {
			continue
		}
		if why != "" {
			left[why] += len(r.by)
			why = ": left out, " + why
		}
		for _, c := range r.by {
			fmt.Fprintf(w, "# %s %s %s %s%s\n", c.ID, c.Time.UTC().Format(time.RFC3339), first(c.Tool, c.Kind), visible(r.change.Path), why)
		}
		if p != nil {
			p.write(w)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the patch: %w", err)
	}
	for _, why := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(in.err, "%s: %s not in the patch: %s\n", program, plural(left[why], "change is", "changes are"), why)
	}
	return nil
}

// exportPatches answers with one object for each path that a call changed.
func (in *invocation) exportPatches(ctx context.Context, db *checkpoint.DB, ops []checkpoint.Checkpoint, root string) error {
	type patch struct {
		Checkpoint checkpoint.ID `json:"checkpoint"`
		Time       time.Time     `json:"time"`
		Tool       string        `json:"tool"`
		Session    string        `json:"session"`
		Turn       string        `json:"turn,omitempty"`
		Path       string        `json:"path"`
		Patch      string        `json:"patch"`
	}
	patches, left := []patch{}, []leftOut{}
	for _, r := range seriesOf(ops, true) {
		c := r.by[0]
		p, why, err := patchOf(ctx, db, &r.change, root)
		if err != nil {
			return err
		}
		if why != "" {
			left = append(left, leftOut{c.ID, r.change.Path, why})
		}
		if p != nil {
			var b strings.Builder
			p.utf8 = true
			p.write(&b)
			patches = append(patches, patch{c.ID, c.Time.UTC(), first(c.Tool, c.Kind), c.Session, c.Turn, r.change.Path, b.String()})
		}
	}
	return writeJSON(in, struct {
		Root    string    `json:"root"` // what the paths in the patches are relative to
		Patches []patch   `json:"patches"`
		Missing int       `json:"missing"`
		LeftOut []leftOut `json:"left_out"`
	}{root, patches, len(left), left})
}

// patchOf is how a path changed; nil where there is nothing to say of it, or, with why, where that can't be said.
func patchOf(ctx context.Context, db *checkpoint.DB, ch *checkpoint.Recorded, root string) (p *filePatch, why string, err error) {
	p = &filePatch{}
	p.oldMode, p.newMode = gitModes(ch)
	if p.oldMode == "" && p.newMode == "" {
		if ch.Role == checkpoint.RoleTree {
			return nil, "a directory was moved as a whole", nil
		}
		return nil, "", nil // git knows of no directories
	}
	var ok bool
	if p.name, ok = relative(ch.Path, root); !ok {
		return nil, "it is outside of " + visible(root), nil
	}
	if gitRefuses(p.name, p.oldMode == gitLink || p.newMode == gitLink) {
		return nil, refusedByGit, nil
	}
	for _, side := range []struct {
		state checkpoint.State
		to    *[]byte
	}{{ch.Before, &p.before}, {ch.After, &p.after}} {
		if *side.to, ok, err = contentOf(ctx, db, side.state); err != nil {
			return nil, "", err
		} else if !ok {
			return nil, "its content is not in the store", nil
		}
	}
	return p, "", nil
}

const refusedByGit = "git takes no path with a name that stands for a repository"

// relative is path as seen from root, with slashes.
func relative(path, root string) (string, bool) {
	path, root = filepath.ToSlash(path), strings.TrimRight(filepath.ToSlash(root), "/")
	rest, ok := strings.CutPrefix(path, root+"/")
	if root == "" { // also for what another system recorded: C:/x
		return strings.TrimLeft(path, "/"), true
	}
	return rest, ok && rest != ""
}

// exportRoot is the directory that exported paths are relative to: --root; else the repository that we are in, the directory that we are in or
// the workspace, whichever is the first that holds every path; else the root of all.
func (in *invocation) exportRoot(ops []checkpoint.Checkpoint) (string, error) {
	if root := in.option("root"); root != "" {
		return trueDir(root)
	}
	var places []string
	here, err := trueDir(".")
	if err == nil {
		for dir := here; ; dir = filepath.Dir(dir) {
			if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
				places = append(places, dir)
				break
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
		places = append(places, here)
	}
	cfg, _, err := in.loadConfig(in.option("config"))
	if err != nil {
		return "", err
	}
	if root := cfg.Tools.FS.WorkspaceRoot; root != "" {
		if root, err = trueDir(root); err != nil {
			return "", err
		}
		places = append(places, root)
	}
	for _, root := range places {
		holds := func(c checkpoint.Checkpoint) bool {
			return !slices.ContainsFunc(c.Changes, func(ch checkpoint.Recorded) bool {
				_, ok := relative(ch.Path, root)
				return !ok && ch.Role != checkpoint.RoleParent
			})
		}
		if !slices.ContainsFunc(ops, func(c checkpoint.Checkpoint) bool { return !holds(c) }) {
			return root, nil
		}
	}
	return string(filepath.Separator), nil
}

// trueDir is a directory as the store names it. One that is gone by now has the name that it is given.
func trueDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the directory: %w", err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	}
	return abs, nil
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
	root := string(filepath.Separator)
	if in.given("root") {
		if root, err = trueDir(in.option("root")); err != nil {
			return err
		}
	}
	r, w := io.Pipe()
	x := &gitExport{ctx: ctx, db: db, root: root, w: bufio.NewWriter(w), progress: progressOn(in.err)}
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
			Outside int    `json:"outside"`
			Refused int    `json:"refused"` // paths that git does not take
		}{dir, x.commits, x.missing, x.outside, x.refused})
	}
	text := fmt.Sprintf("wrote %s into %s", plural(x.commits, "commit", "commits"), visible(dir))
	if x.missing > 0 {
		text += "; " + plural(x.missing, "content was", "contents were") + " not in the store"
	}
	if x.outside > 0 {
		text += "; " + plural(x.outside, "change was", "changes were") + " outside of " + visible(root)
	}
	if x.refused > 0 {
		text += "; " + plural(x.refused, "change was", "changes were") + " left out: " + refusedByGit
	}
	return in.write([]byte(text + "\n"))
}

// gitExport writes the stream that git fast-import reads.
type gitExport struct {
	ctx      context.Context
	db       *checkpoint.DB
	root     string
	w        *bufio.Writer
	progress func(string, int, int)

	commits, missing, outside, refused int
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
		subject = fmt.Sprintf("turn %s: %s", c.Turn, plural(len(ops), "call", "calls"))
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
	rel, below := relative(path, x.root)
	name := edit.QuotePath(rel)
	switch {
	case s.Kind == checkpoint.Dir:
		return nil
	case !below:
		if remove { // told once, not for its origin too
			x.outside++
		}
		return nil
	case gitRefuses(rel, s.Kind == checkpoint.Symlink):
		if remove {
			x.refused++
		}
		return nil
	}
	switch s.Kind {
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
