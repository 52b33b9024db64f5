package jsfs

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"moltisfs/internal/args"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/js"
	"moltisfs/internal/policy"
	"moltisfs/internal/refusal"
)

// An op carries out a method of fs. unlink is rm.
type op struct {
	name    string
	changes bool
	run     func(*call, context.Context) (js.Reply, error)
}

var operations = []op{
	{"readFile", false, (*call).readFile},
	{"writeFile", true, (*call).writeFile},
	{"appendFile", true, (*call).appendFile},
	{"readdir", false, (*call).readdir},
	{"stat", false, (*call).stat},
	{"mkdir", true, (*call).mkdir},
	{"rm", true, (*call).rm},
	{"rename", true, (*call).rename},
	{"copyFile", true, (*call).copyFile},
	{"exists", false, (*call).exists},
}

func operation(name string) op {
	for _, o := range operations {
		if o.name == name {
			return o
		}
	}
	return op{}
}

// call is one call of fs on its way.
type call struct {
	*engine.Call
	*Dialect
	q      js.Request
	at, to string // from the root on
	idle   bool   // everything was already as it should be
}

// answer is the answer to one call of fs.
type answer struct {
	js.Reply
	failed error
}

// An answer is private: no hook sees it.
func (answer) ForHooks() (json.RawMessage, error)         { return nil, nil }
func (a answer) Replaced(json.RawMessage) (answer, error) { return a, nil }

// hooked is a call as hooks see it. Bytes that are UTF-8 are text to them.
type hooked struct {
	Path      string  `json:"path"`
	To        string  `json:"destination,omitempty"`
	Recursive bool    `json:"recursive,omitempty"`
	Encoding  string  `json:"encoding,omitempty"`
	Text      *string `json:"data,omitempty"`
	Bytes     *string `json:"data_base64,omitempty"`
}

var hookedSpec = args.Of[hooked](nil)

// call carries out one call of the script's.
func (r *run) call(ctx context.Context, q js.Request) (js.Reply, error) {
	o := operation(q.Op)
	if o.run == nil {
		return js.Reply{}, fmt.Errorf("there is no fs.%s", q.Op)
	}
	c := &call{Dialect: r.Dialect, q: q, Call: engine.NewCall(r.in, Name, "fs."+q.Op)}
	c.Run, c.Waits = r.id, q.Waits
	raw, err := args.Encode(c.hooked())
	if err != nil {
		return js.Reply{}, err
	}
	c.place()
	var follows []string
	if o.changes {
		follows = engine.Changing
		defer r.alone(c.paths())()
	}
	out, err := engine.Do(ctx, r.e, c.Call, engine.Operation[hooked, answer]{
		Args: raw, Private: true, Changes: o.changes, Follows: follows, Time: r.e.TimeFor(o.changes, r.in.Tier),
		Decode: func(now json.RawMessage) (_ hooked, err error) { // it is as we wrote it, unless a hook changed it
			if len(now) != len(raw) || &now[0] != &raw[0] {
				err = c.decode(now)
			}
			return c.hooked(), err
		},
		Run: func(ctx context.Context, _ hooked) (out answer, err error) {
			if err := c.asks(); err != nil {
				return out, err
			}
			out.Reply, err = o.run(c, ctx)
			return out, err
		},
		Refuse: func(_ context.Context, _ *engine.Call, _ hooked, no *engine.Refusal) (answer, string) {
			return answer{failed: c.failure(no)}, string(no.Code)
		},
	})
	if err != nil {
		r.e.Logger().Error("a call of fs failed", "op", q.Op, "err", err)
		out.failed = &js.Failure{Message: "fs." + q.Op + ": " + q.Path + ": the host is broken"}
	}
	if out.failed != nil {
		return js.Reply{}, out.failed
	}
	if o.changes && !c.idle {
		paths := c.paths()
		if q.Op == "copyFile" {
			paths = paths[1:]
		}
		r.changed(c.Call, paths)
	}
	return out.Reply, nil
}

// paths lists the paths that the call names.
func (c *call) paths() []string {
	if c.to == "" {
		return []string{path.Clean(c.at)}
	}
	return []string{path.Clean(c.at), path.Clean(c.to)}
}

func (c *call) hooked() hooked {
	h := hooked{Path: c.q.Path, To: c.q.To, Recursive: c.q.Recursive, Encoding: c.q.Encoding}
	switch {
	case c.q.Op != "writeFile" && c.q.Op != "appendFile":
	case utf8.Valid(c.q.Data):
		h.Text = new(string(c.q.Data))
	default:
		h.Bytes = new(base64.StdEncoding.EncodeToString(c.q.Data))
	}
	return h
}

// decode takes the call as a hook may have changed it.
func (c *call) decode(raw json.RawMessage) error {
	in, err := hookedSpec.Decode(raw)
	if err != nil {
		return err
	}
	h := in.(*hooked)
	c.q.Path, c.q.To, c.q.Recursive, c.q.Encoding = h.Path, h.To, h.Recursive, h.Encoding
	switch {
	case h.Text != nil && h.Bytes != nil:
		return args.Errorf("", "data and data_base64 are one too many")
	case h.Text != nil:
		c.q.Data = []byte(*h.Text)
	case h.Bytes != nil:
		if c.q.Data, err = base64.StdEncoding.DecodeString(*h.Bytes); err != nil {
			return args.Errorf("", "data_base64 is no base64: %v", err)
		}
	}
	c.place()
	return nil
}

// place finds the paths from the root on.
func (c *call) place() {
	c.at, c.to = c.Dialect.at(c.q.Path), c.Dialect.at(c.q.To)
	c.Trace.Paths = []string{c.at}
}

// asks puts the call before the operator's policy chain, as the script wrote it.
func (c *call) asks() error {
	in := policy.Input{Operation: c.q.Op, Path: c.q.Path, Destination: c.q.To,
		Encoding: c.q.Encoding, ResolvedPath: c.at, ResolvedDestination: c.to}
	if c.q.Op == "mkdir" || c.q.Op == "rm" {
		in.Recursive = &c.q.Recursive
	}
	return c.AskPolicy(in)
}

func (c *call) readFile(ctx context.Context) (out js.Reply, err error) {
	err = c.Read(ctx, c.at,
		func(ctx context.Context, s *engine.Source) (*engine.ReadRecord, error) {
			all, sight, err := s.Bytes(ctx, 0, -1, c.e.Config().MaxReadBytes)
			if err != nil {
				return nil, err
			}
			if c.q.Encoding == "buffer" {
				out = js.Reply{Kind: js.Bytes, Data: all}
				return sight, nil
			}
			if !utf8.Valid(all) {
				return nil, engine.Refuse(refusal.NotUTF8, s.Path, firstInvalid(all))
			}
			out = js.Reply{Kind: js.Text, Data: all}
			return sight, nil
		})
	return out, err
}

// firstInvalid says where UTF-8 ends, as Rust does.
func firstInvalid(b []byte) string {
	at := 0
	for {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n <= 1 {
			break
		}
		at += n
	}
	for n := 1; at+n <= len(b); n++ {
		if utf8.FullRune(b[at : at+n]) {
			return fmt.Sprintf("invalid utf-8 sequence of %d bytes from index %d", max(n-1, 1), at)
		}
	}
	return fmt.Sprintf("incomplete utf-8 byte sequence from index %d", at)
}

func (c *call) writeFile(ctx context.Context) (js.Reply, error) {
	raw := c.q.Data
	if raw == nil {
		raw = []byte{}
	}
	done, _, err := c.Write(ctx, engine.WriteArgs{Path: c.at, Raw: raw,
		Rules: engine.Rules{Meant: true}})
	return c.did(done, err)
}

func (c *call) did(done *engine.Done, err error) (js.Reply, error) {
	c.idle = err == nil && done.Idle
	return js.Reply{}, err
}

// appendFile adds to the end of a file, or makes it.
func (c *call) appendFile(ctx context.Context) (js.Reply, error) {
	for try := 0; ; try++ {
		done, err := c.Append(ctx, c.at, c.q.Data, engine.Rules{Meant: true})
		if r := engine.Reason(err); err == nil || r == nil || r.Cause != engine.Absent {
			return c.did(done, err)
		}
		done, err = c.Create(ctx, c.at, c.q.Data, engine.Rules{})
		if !engine.Conflicts.In(err) || try > 2 { // somebody made it meanwhile
			return c.did(done, err)
		}
	}
}

func (c *call) readdir(ctx context.Context) (js.Reply, error) {
	found, err := c.List(ctx, c.at)
	if err != nil {
		return js.Reply{}, err
	}
	names := []string{}
	for _, e := range found.Entries {
		names = append(names, path.Base(e.Path))
	}
	return asJSON(names)
}

func asJSON(v any) (js.Reply, error) {
	b, err := args.Encode(v)
	return js.Reply{Kind: js.JSON, Data: b}, err
}

// statResult is the answer of fs.stat. A time that the system does not tell is null.
type statResult struct {
	Size        int64  `json:"size"`
	IsFile      bool   `json:"isFile"`
	IsDirectory bool   `json:"isDirectory"`
	IsSymlink   bool   `json:"isSymlink"`
	Readonly    bool   `json:"readonly"`
	MtimeMs     *int64 `json:"mtimeMs"`
	AtimeMs     *int64 `json:"atimeMs"`
	BirthtimeMs *int64 `json:"birthtimeMs"`
}

// stat tells of what a path leads to, and whether the path itself is a link.
func (c *call) stat(ctx context.Context) (js.Reply, error) {
	is, err := c.Stat(ctx, c.at, false)
	if err != nil {
		return js.Reply{}, err
	}
	link := is.Kind == guardfs.KindSymlink
	if link {
		to, err := c.Stat(ctx, c.at, true)
		switch r := engine.Reason(err); {
		case err == nil:
			is = to
		case r == nil || r.Code != engine.CodeNotFound: // one that leads nowhere is told as itself
			return js.Reply{}, err
		}
	}
	var born time.Time
	if is.ID.Birth != 0 {
		born = time.Unix(0, is.ID.Birth)
	}
	return asJSON(statResult{Size: is.Size, IsFile: is.Kind == guardfs.KindFile,
		IsDirectory: is.Kind == guardfs.KindDir, IsSymlink: link, Readonly: is.Mode&0o222 == 0,
		MtimeMs: millis(is.ModTime), AtimeMs: millis(is.AccessTime), BirthtimeMs: millis(born)})
}

func millis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.UnixMilli())
}

// mkdir makes a directory. The directory that a link, or a name that ends in a dot, leads to is there already.
func (c *call) mkdir(ctx context.Context) (js.Reply, error) {
	done, err := c.Mkdir(ctx, engine.MkdirArgs{Path: bare(c.at), Exists: c.q.Recursive,
		Rules: engine.Rules{Parents: c.q.Recursive}})
	if r := engine.Reason(err); err != nil && r != nil &&
		(r.Cause == engine.IsLink || r.Cause == engine.BadPath) {
		is, no := c.Stat(ctx, c.at, true)
		if c.idle = no == nil && c.q.Recursive && is.Kind == guardfs.KindDir; c.idle {
			return js.Reply{}, nil
		}
		if no == nil {
			err = engine.Refuse(engine.Conflicts, is.Path, nil)
		}
	}
	return c.did(done, err)
}

// bare is the path of a directory without the slash behind it.
func bare(p string) string { return cmp.Or(strings.TrimRight(p, "/"), p) }

// slashed refuses a path with a slash behind it of what is no directory.
func (c *call) slashed(ctx context.Context) error {
	if !strings.HasSuffix(c.at, "/") && !strings.HasSuffix(c.to, "/") {
		return nil
	}
	is, err := c.Stat(ctx, bare(c.at), false)
	if err == nil && is.Kind != guardfs.KindDir {
		err = syscall.ENOTDIR
	}
	return err
}

func (c *call) rm(ctx context.Context) (js.Reply, error) {
	if err := c.slashed(ctx); err != nil {
		return js.Reply{}, err
	}
	return c.did(c.Delete(ctx, bare(c.at), engine.DeleteOptions{Recursive: c.q.Recursive}))
}

// rename to the name that it has is none.
func (c *call) rename(ctx context.Context) (js.Reply, error) {
	if err := c.slashed(ctx); err != nil {
		return js.Reply{}, err
	}
	done, err := c.Move(ctx, engine.MoveArgs{From: bare(c.at), To: bare(c.to), Overwrite: true})
	if r := engine.Reason(err); err != nil && r != nil && r.Cause == engine.IntoItself &&
		r.Facts == any(r.Path) {
		c.idle = true
		return js.Reply{}, nil
	}
	return c.did(done, err)
}

func (c *call) copyFile(ctx context.Context) (js.Reply, error) {
	return c.did(c.Copy(ctx, engine.CopyArgs{From: c.at, To: c.to, Overwrite: true,
		Rules: engine.Rules{Meant: true}}))
}

// exists says false of what can't be looked at, save what the policy closes: that is refused, as
// everywhere, whether or not it is there.
func (c *call) exists(ctx context.Context) (js.Reply, error) {
	_, err := c.Stat(ctx, c.at, true)
	if r := engine.Reason(err); err != nil && (r == nil || r.Code == engine.CodePathDenied) {
		return js.Reply{}, err
	}
	return asJSON(err == nil)
}

// failure is a refusal as the exception that a script gets.
func (c *call) failure(r *engine.Refusal) error {
	name := "fs." + c.q.Op
	shown, two := c.q.Path, c.q.Op == "rename" || c.q.Op == "copyFile"
	if two {
		shown += " -> " + c.q.To
	}
	switch {
	case r.Cause == engine.ChainFailed:
		text := any(r.Facts)
		if e, ok := errors.AsType[*policy.ChainError](r); ok {
			text = e.Err
		}
		return &js.Failure{Message: fmt.Sprintf("%s: policy error: %v", name, text), Code: "EACCES"}
	case r.Code == engine.CodePathDenied:
		return &js.Failure{Message: name + " denied by policy: " + c.q.Path + " is not allowed",
			Code: "EACCES"}
	case r.Cause == refusal.NotUTF8:
		return &js.Failure{Message: fmt.Sprintf("%s: invalid UTF-8 in %s: %v", name, c.q.Path, r.Facts)}
	}
	if c.q.Path == "" || two && c.q.To == "" { // names nothing, as a system has it
		r = &engine.Refusal{Code: engine.CodeNotFound, Cause: engine.Absent}
	}
	if text, code := c.systemWord(r); text != "" {
		return &js.Failure{Message: name + ": " + shown + ": " + text, Code: code}
	}
	return &js.Failure{Message: name + ": " + shown + ": " + why(r), Code: strings.ToUpper(string(r.Code))}
}

// why says why a call was refused that the system would have carried out, and what to do.
func why(r *engine.Refusal) string {
	told := refusal.Tell(r, refusal.Voice{Private: true,
		Now: map[string]string{"plain": "yes", "by": " with fs.readFile"}})
	if told.Hint == "" {
		return told.Says
	}
	return told.Says + ": " + refusal.Clause(told.Hint)
}

// systemWords are the texts of Rust's std::io for errors of the system, with Node's codes.
var systemWords = []struct {
	no         syscall.Errno
	code, text string
}{
	{syscall.ENOENT, "ENOENT", "No such file or directory (os error 2)"},
	{syscall.EACCES, "EACCES", "Permission denied (os error 13)"},
	{syscall.EEXIST, "EEXIST", "File exists (os error 17)"},
	{syscall.EXDEV, "EXDEV", "Invalid cross-device link (os error 18)"},
	{syscall.ENOTDIR, "ENOTDIR", "Not a directory (os error 20)"},
	{syscall.EISDIR, "EISDIR", "Is a directory (os error 21)"},
	{syscall.EINVAL, "EINVAL", "Invalid argument (os error 22)"},
	{syscall.ENOSPC, "ENOSPC", "No space left on device (os error 28)"},
	{syscall.EROFS, "EROFS", "Read-only file system (os error 30)"},
	{syscall.ENAMETOOLONG, "ENAMETOOLONG", "File name too long (os error 36)"},
	{syscall.ENOTEMPTY, "ENOTEMPTY", "Directory not empty (os error 39)"},
	{syscall.ELOOP, "ELOOP", "Too many levels of symbolic links (os error 40)"},
}

// systemWord gives the text and the code that the system would have refused with; "" if it would not have.
func (c *call) systemWord(r *engine.Refusal) (text, code string) {
	no := refusal.Of(r.Cause).Errno
	switch f := r.Facts.(type) {
	case *guardfs.NotRegularError:
		if f.Kind == "directory" {
			no = syscall.EISDIR
		}
	case *guardfs.BadPathError:
		if strings.Contains(f.Why, "longer than") {
			no = syscall.ENAMETOOLONG
		} else if strings.HasPrefix(f.Why, "ends in") && slices.Contains(
			[]string{"writeFile", "appendFile", "copyFile"}, c.q.Op) {
			no = syscall.EISDIR
		}
	}
	if no == 0 && !errors.As(r, &no) {
		return "", ""
	}
	for _, w := range systemWords {
		if w.no == no {
			return w.text, w.code
		}
	}
	return fmt.Sprintf("%v (os error %d)", no, int(no)), ""
}
