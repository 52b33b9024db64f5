package jsfs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"moltisfs/internal/args"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/js"
	"moltisfs/internal/policy"
)

// failure is a refusal as the exception that a script gets.
func (c *call) failure(r *engine.Refusal, err error) error {
	name := "fs." + c.q.Op
	shown, two := c.q.Path, c.q.Op == "rename" || c.q.Op == "copyFile"
	if two {
		shown += " -> " + c.q.To
	}
	switch {
	case r.Cause == engine.ChainFailed:
		text := any(r.Facts)
		if e, ok := errors.AsType[*policy.ChainError](err); ok {
			text = e.Err
		}
		return &js.Failure{Message: fmt.Sprintf("%s: policy error: %v", name, text), Code: "EACCES"}
	case r.Code == engine.CodePathDenied:
		return &js.Failure{Message: name + " denied by policy: " + c.q.Path + " is not allowed",
			Code: "EACCES"}
	case r.Cause == notUTF8:
		return &js.Failure{Message: fmt.Sprintf("%s: invalid UTF-8 in %s: %v", name, c.q.Path, r.Facts)}
	}
	if c.q.Path == "" || two && c.q.To == "" { // names nothing, as a system has it
		r = &engine.Refusal{Code: engine.CodeNotFound, Cause: engine.Absent}
	}
	if text, code := c.systemWord(r, err); text != "" {
		return &js.Failure{Message: name + ": " + shown + ": " + text, Code: code}
	}
	return &js.Failure{Message: name + ": " + shown + ": " + why(r),
		Code: strings.ToUpper(string(r.Code))}
}

// systemWords are what Rust's std::io says of the system's errors, by Node's codes.
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

// asSystem are our causes as the system has them.
var asSystem = map[engine.Cause]syscall.Errno{
	engine.Absent: syscall.ENOENT, engine.ParentMissing: syscall.ENOENT,
	engine.NotPermitted: syscall.EACCES, engine.ReadOnly: syscall.EACCES,
	engine.NotADirectory: syscall.ENOTDIR,
	engine.LinkLoop:      syscall.ELOOP, engine.NameTooLong: syscall.ENAMETOOLONG,
	engine.DiskFull: syscall.ENOSPC, engine.DiskReadOnly: syscall.EROFS,
	engine.NotEmpty: syscall.ENOTEMPTY, engine.IntoItself: syscall.EINVAL,
	engine.Conflicts: syscall.EEXIST, engine.BadPath: syscall.EINVAL,
}

// systemWord is what the system would have said; "" where it would not have refused.
func (c *call) systemWord(r *engine.Refusal, err error) (text, code string) {
	no := asSystem[r.Cause]
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
	if no == 0 && !errors.As(err, &no) {
		return "", ""
	}
	for _, w := range systemWords {
		if w.no == no {
			return w.text, w.code
		}
	}
	return fmt.Sprintf("%v (os error %d)", no, int(no)), ""
}

// why says in a script's words why a call was refused that the system would have carried out, and
// what to do.
func why(r *engine.Refusal) string {
	switch f := r.Facts.(type) {
	case *args.Error:
		if f.Hint != "" {
			return f.What + ": " + f.Hint
		}
		return f.What
	case *guardfs.TooLargeError:
		return fmt.Sprintf("the file is %d bytes, over the limit of %d", f.Size, f.Max)
	}
	switch {
	case r.Cause == engine.NobodyToAsk:
		return "the change needs approval, there is nobody to ask, and nothing was done: tell the operator"
	case r.Cause == engine.NotApproved && r.Facts != "":
		return fmt.Sprintf("the change was not approved (%v), and nothing was done: ask before trying again", r.Facts)
	case r.Cause == engine.RunsCode:
		return "it runs code later, or tells an agent what to do (class exec): a change of it takes an " +
			"approval of its own, and nothing was done; the operator can lift that: " + r.Lift()
	case r.Cause == engine.TooManyCalls:
		return fmt.Sprintf("too many calls (%v), and nothing was done: wait, then call again", r.Facts)
	case r.Cause == engine.NoAnswer:
		return fmt.Sprintf("the file system does not answer; %v", r.Facts)
	case r.Cause == engine.Withheld:
		return "the call has ended, and its answer is withheld: what it changed is changed; do not send it again, tell the user"
	case r.Cause == engine.HalfMade:
		return "the change was made in part and could not be taken back: read what is there"
	}
	if text := words[r.Code]; text != "" {
		return text
	}
	return strings.ReplaceAll(r.Cause.Name, "_", " ") + " (" + string(r.Code) +
		"), and nothing was done"
}

const (
	unread = "it has to be read as it is now before it is changed: await fs.readFile first"
	late   = "nobody approved the change in time, and nothing was done: ask before trying again"
	stale  = "it changed while the change waited for approval, and nothing was done: read it again"
	asked  = "the change was not approved, and nothing was done: ask before trying again"
)

var words = map[engine.Code]string{
	engine.CodeMustRead:         unread,
	engine.CodeModified:         unread,
	engine.CodeSymlinkRefused:   "it is a symbolic link: name the file that it leads to",
	engine.CodeApprovalDenied:   asked,
	engine.CodeApprovalTimeout:  late,
	engine.CodeApprovalStale:    stale,
	engine.CodePermissionDenied: "the operator's settings do not allow it, and nothing was done",
	engine.CodeNotRegularFile:   "it is not a file",
	engine.CodeDeadline:         "it took too long, and nothing was done",
	engine.CodeUnavailable:      "the sandbox where this has to run can't be reached: try again, or tell the user",
	engine.CodeConflict:         "somebody else is changing it, and nothing was done: try again",
}
