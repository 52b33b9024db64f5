package jsfs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/js"
	"moltisfs/internal/policy"
	"moltisfs/internal/refusal"
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
	case r.Cause == refusal.NotUTF8:
		return &js.Failure{Message: fmt.Sprintf("%s: invalid UTF-8 in %s: %v", name, c.q.Path, r.Facts)}
	}
	if c.q.Path == "" || two && c.q.To == "" { // names nothing, as a system has it
		r = &engine.Refusal{Code: engine.CodeNotFound, Cause: engine.Absent}
	}
	if text, code := c.systemWord(r, err); text != "" {
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

// systemWord is what the system would have said; "" where it would not have refused.
func (c *call) systemWord(r *engine.Refusal, err error) (text, code string) {
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
