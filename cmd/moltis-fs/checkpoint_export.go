package main

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/lazy"
	"moltisfs/tools"
)

func checkpointExportCommand() *command {
	return &command{
		records: "export", name: "export", short: "print the history as a patch",
		long: `It writes one diff for each path that the calls changed, from before the path's first
change to after its last one. git apply takes the patch in the tree as it was, and git apply -R in the
tree as it is. If others changed such a path in between, the diff has their changes too, and standard
error says so. Paths are relative to --root, or to the working directory.

Left out are paths outside of --root, paths that git refuses (such as .git), and what the store does
not hold. The command says how many changes that are.` + timesTaken,
		options:  options("root since until identity principal session config data-dir sandbox", opt("turn", "NAME", "only of this turn")),
		examples: []string{"moltis-fs store export --session s1 --turn t7 > t7.patch"},
		run:      exportCheckpoints,
	}
}

func exportCheckpoints(ctx context.Context, in *invocation) error {
	f, err := in.filter()
	if err != nil {
		return err
	}
	f.Limit = 1000
	return in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
		ops, err := history(ctx, db, f)
		if err != nil {
			return err
		}
		if len(ops) == 0 && in.count("turn", "since", "until", "session", "principal") > 0 {
			return &exitError{exitRefused, "no change is in what you ask for",
				program + " log --all shows turns, sessions and times", tools.KindNotFound}
		}
		x := &export{ctx: ctx, db: db, left: map[string]int{}}
		if x.root, err = in.here(); err != nil {
			return err
		}
		if err := x.series(seriesOf(ops)); err != nil {
			return err
		}
		if err := in.write(x.text.Bytes()); err != nil {
			return err
		}
		for _, why := range slices.Sorted(maps.Keys(x.left)) {
			n := plural(x.left[why], "change is", "changes are")
			fmt.Fprintf(in.err, "%s: %s not in the patch: %s\n", program, n, why)
		}
		if x.mixed > 0 {
			fmt.Fprintf(in.err, "%s: %s also changed by others in between, and the patch has that too\n",
				program, plural(x.mixed, "path was", "paths were"))
		}
		return nil
	})
}

// history lists every checkpoint that took place, oldest first.
func history(ctx context.Context, db *checkpoint.DB,
	f checkpoint.Filter) ([]checkpoint.Checkpoint, error) {
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

// An export is a history on its way into a patch.
type export struct {
	ctx   context.Context
	db    *checkpoint.DB
	root  string         // paths are relative to it
	text  bytes.Buffer   // the patch: nothing of it is written before all of it is there
	left  map[string]int // changes that are left out, by the reason
	mixed int            // paths that others changed, too
}

// series writes a diff for each path that can be told, and counts the changes that are left out. git apply wants
// each path once: of one that comes twice it forgets that it was created or removed.
func (x *export) series(all []*series) error {
	for _, s := range all {
		ch := s.asOne()
		name, below := relative(s.path, x.root)
		from, to := gitModes(ch)
		why := ""
		switch {
		case from == "" && to == "" && s.to-s.from == len(s.changes):
			if ch.Role != checkpoint.RoleTree {
				continue // git knows of no directories
			}
			why = "a directory was moved as a whole"
		case !below:
			why = "it is outside of " + visible(x.root)
		case gitRefuses(name, from == gitLink || to == gitLink):
			why = "git takes no path with a name that stands for a repository"
		}
		if why != "" {
			x.left[why] += len(s.changes)
			continue
		}
		if gone := len(s.changes) - (s.to - s.from); gone > 0 {
			x.left["its content is not in the store"] += gone
		}
		if s.from == s.to {
			continue
		}
		before, err := x.content(s.path, &ch.Before)
		if err != nil {
			return err
		}
		after, err := x.content(s.path, &ch.After)
		if err != nil {
			return err
		}
		if s.mixed() {
			x.mixed++
		}
		writeDiff(&x.text, name, from, to, before, after)
	}
	return nil
}

// content gives the content that git would store for path in the state s: of a file its bytes, of a
// link its target.
func (x *export) content(path string, s *checkpoint.State) ([]byte, error) {
	if s.Kind != checkpoint.File {
		return []byte(s.Target), nil
	}
	content, err := x.db.Content(x.ctx, s.Hash)
	if errors.Is(err, checkpoint.ErrSealed) { // half a history would look like a whole one
		return nil, misuse("--identity names the file with the key", "%v", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", visible(path), err)
	}
	return content, nil
}

// A series is all changes of a path. changes[from:to] can be told: they go from the first state
// whose content is in the store to the last one. Contents in between may have gone.
type series struct {
	path     string
	by       []*checkpoint.Checkpoint
	changes  []*checkpoint.Recorded // one of each of by
	from, to int
}

// seriesOf are in the order in which they began.
func seriesOf(ops []checkpoint.Checkpoint) []*series {
	var out []*series
	at := map[string]*series{}
	for i := range ops {
		for j := range ops[i].Changes {
			ch := &ops[i].Changes[j]
			s := at[ch.Path]
			if s == nil {
				s = &series{path: ch.Path}
				at[ch.Path] = s
				out = append(out, s)
			}
			s.by, s.changes = append(s.by, &ops[i]), append(s.changes, ch)
		}
	}
	for _, s := range out {
		s.to = len(s.changes)
		for s.from < s.to && s.changes[s.from].Before.Kind == checkpoint.File &&
			!s.changes[s.from].Stored {
			s.from++
		}
		for s.to > s.from && s.changes[s.to-1].After.Kind == checkpoint.File &&
			!s.changes[s.to-1].AfterStored {
			s.to--
		}
	}
	return out
}

// asOne is the series as one change.
func (s *series) asOne() *checkpoint.Recorded {
	whole := *s.changes[min(s.from, len(s.changes)-1)]
	if s.from < s.to {
		whole.After = s.changes[s.to-1].After
	}
	return &whole
}

// mixed reports whether others changed the path during the changes that can be told.
func (s *series) mixed() bool {
	for i := s.from; i < s.to; i++ {
		if s.by[i].Kind == checkpoint.KindExternal || i > s.from && !follows(&s.changes[i-1].After, &s.changes[i].Before) {
			return true
		}
	}
	return false
}

// follows reports whether a path was still what a change left behind when the next one found it.
// A content that was purged, or not hashed, may have been the same.
func follows(after, before *checkpoint.State) bool {
	unknown := func(s *checkpoint.State) bool { return s.Kind == checkpoint.File && s.Hash == "" }
	return after.Same(*before) || unknown(after) && before.Kind == checkpoint.File ||
		unknown(before) && after.Kind == checkpoint.File
}

// writeDiff writes how a path became another, as git diff --binary --full-index does. A mode of "" is
// no file.
func writeDiff(w *bytes.Buffer, name, from, to string, before, after []byte) {
	switch {
	case from == to && bytes.Equal(before, after):
		return
	case from != "" && to != "" && (from == gitLink) != (to == gitLink): // of another type: away, and made
		writeDiff(w, name, from, "", before, nil)
		writeDiff(w, name, "", to, nil, after)
		return
	}
	fmt.Fprintf(w, "diff --git %s %s\n", gitName("a/"+name), gitName("b/"+name))
	index := fmt.Sprintf("index %s..%s", gitHash(from, before), gitHash(to, after))
	switch {
	case from == "":
		fmt.Fprintf(w, "new file mode %s\n", to)
	case to == "":
		fmt.Fprintf(w, "deleted file mode %s\n", from)
	case from != to:
		fmt.Fprintf(w, "old mode %s\nnew mode %s\n", from, to)
	default:
		index += " " + from
	}
	if bytes.Equal(before, after) && from != "" && to != "" {
		return // the modes are all
	}
	w.WriteString(index + "\n")
	if isText(before) && isText(after) {
		w.WriteString(diff.Unified(name, diff.EndsOf(from != "", to != ""), diff.Patch(before, after)))
		return
	}
	w.WriteString("GIT binary patch\n")
	for _, content := range [][]byte{after, before} {
		fmt.Fprintf(w, "literal %d\n", len(content))
		var packed bytes.Buffer
		z := zlib.NewWriter(&packed)
		_, _ = z.Write(content) // into memory
		_ = z.Close()
		for chunk := range slices.Chunk(packed.Bytes(), 52) {
			w.WriteByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[len(chunk)-1])
			for four := range slices.Chunk(chunk, 4) {
				var n uint32
				for i := range 4 {
					n <<= 8
					if i < len(four) {
						n |= uint32(four[i])
					}
				}
				var digits [5]byte
				for i := len(digits) - 1; i >= 0; i-- {
					digits[i] = base85[n%85]
					n /= 85
				}
				w.Write(digits[:])
			}
			w.WriteByte('\n')
		}
		w.WriteByte('\n')
	}
}

// base85 are git's digits.
const base85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// isText says by git's rule whether a content is shown as lines.
func isText(content []byte) bool { return bytes.IndexByte(content[:min(len(content), 8000)], 0) < 0 }

// gitName is a name as a header of git's has it.
func gitName(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		return diff.QuotePath(name)
	}
	return name
}

// gitHash is the name that git gives a content; that of no file is all zeros.
func gitHash(mode string, content []byte) string {
	if mode == "" {
		return strings.Repeat("0", 2*sha1.Size)
	}
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
}

// gitLink is git's mode of a symbolic link.
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

// gitModes gives the modes of both sides of a change. A side whose mode nobody recorded has the mode of the other.
func gitModes(c *checkpoint.Recorded) (before, after string) {
	b, a := c.Before, c.After
	if b.Kind == checkpoint.File && a.Kind == checkpoint.File {
		b.Mode, a.Mode = cmp.Or(b.Mode, a.Mode), cmp.Or(a.Mode, b.Mode)
	}
	return gitMode(b), gitMode(a)
}

// relative is path as seen from root, with slashes; false where it does not lie below.
func relative(path, root string) (string, bool) {
	rest, ok := strings.CutPrefix(filepath.ToSlash(path), strings.TrimRight(filepath.ToSlash(root), "/")+"/")
	return rest, ok && rest != ""
}

// gitModulesName are the names of .gitmodules on NTFS, and some more.
var gitModulesName = lazy.Regexp(`^(?:\.gitmodules|gitmod~.*|g?i?[0-9a-f]*~[0-9]+)$`)

// gitRefuses says whether git may take no file of that path, which is relative and has slashes. One
// such path, and git apply takes nothing of a whole patch. A name that leads into a repository on
// some file system is refused on all, because nobody knows where the patch goes: with letters that
// HFS+ ignores, or with dots, spaces or a stream behind it, or by its short name, on NTFS.
func gitRefuses(path string, link bool) bool {
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		name = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) {
				return -1
			}
			return unicode.ToLower(r)
		}, name)
		name, _, _ = strings.Cut(name, string(unicode.ReplacementChar)) // git reads no further
		name, _, _ = strings.Cut(name, ":")
		name = strings.TrimRight(name, ". ")
		if name == ".git" || name == "git~1" || link && gitModulesName().MatchString(name) {
			return true
		}
	}
	return path == "" // the root directory itself
}
