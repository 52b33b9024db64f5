package engine

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/edit"
	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// A Code is the kind of a refusal. It is the same in every dialect.
type Code string

const (
	CodeNotFound         Code = "not_found"
	CodePermissionDenied Code = "permission_denied"
	CodeTooLarge         Code = "too_large"
	CodeNotRegularFile   Code = "not_regular_file"
	CodePathDenied       Code = "path_denied"
	CodeBadRequest       Code = "bad_request"
	CodeSymlinkRefused   Code = "symlink_refused"
	CodeMustRead         Code = "must_read_before_write"
	CodeModified         Code = "modified_since_read"
	CodeNoMatch          Code = "no_match"
	CodeNotUnique        Code = "not_unique"
	CodeConflict         Code = "conflict"
	CodeApprovalDenied   Code = "approval_denied"
	CodeApprovalTimeout  Code = "approval_timeout"
	CodeApprovalStale    Code = "approval_stale"
	CodeUnsupported      Code = "unsupported"
	CodeLimit            Code = "limit"
	CodeDeadline         Code = "deadline"
	CodePolicyError      Code = "policy_error"
	CodeIOError          Code = "io_error"
	CodeUnavailable      Code = "unavailable"
)

// A Cause tells apart the refusals that share a code. Facts is a nil pointer to the type of their
// facts, nil where there are none.
type Cause struct {
	Code  Code
	Name  string
	Facts any
}

// In says whether err is refused for this cause, which an error from below is too that nobody has made
// a refusal of yet. A Cause is no error: errors.Is would find some and pass over others.
func (c Cause) In(err error) bool {
	r := Reason(err)
	return err != nil && r != nil && r.Cause == c
}

// A Refusal is a "no" as facts. Each dialect says it in its own words.
type Refusal struct {
	Code  Code  // mostly that of the cause
	Cause Cause // one of Causes
	Path  string
	Facts any   // what there is to say beside the path; the causes tell its type
	Err   error // for the log and errors.Is; never shown
}

// Error is for logs.
func (r *Refusal) Error() string {
	s := r.Cause.Name
	if r.Path != "" {
		s += " " + edit.ShownPath(r.Path)
	}
	if r.Err != nil {
		s += ": " + r.Err.Error()
	}
	return s
}

func (r *Refusal) Unwrap() error { return r.Err }

// Rule gives the rule of the policy that refused a path, for the operator alone; or "".
func (r *Refusal) Rule() string {
	if d, ok := errors.AsType[*policy.Denied](r.Err); ok {
		return d.Rule
	}
	return ""
}

// Class is the protected class that closes a path, as a caller may be told; or "".
func (r *Refusal) Class() string {
	if d, ok := errors.AsType[*policy.Denied](r.Err); ok {
		return d.Class
	}
	return ""
}

// Lift is the line of the configuration by which the operator takes a path out of its class; of a
// path that can't be written there, the key.
func (r *Refusal) Lift() string {
	const where = " in [tools.fs]"
	rule := glob.Literal(path.Clean(r.Path))
	_, err := glob.CompileRule(rule, nil)
	if err != nil || !utf8.ValidString(rule) || strings.ContainsFunc(rule, unicode.IsControl) {
		return "unprotected" + where
	}
	return "unprotected = [" + strconv.Quote(rule) + "]" + where
}

// is answers for the code; there may be no refusal.
func (r *Refusal) is(c Code) bool { return r != nil && r.Code == c }

// Refuse is a refusal for a cause that is no error from below.
func Refuse(c Cause, path string, facts any) error {
	return &Refusal{Code: c.Code, Cause: c, Path: path, Facts: facts}
}

// Causes are all that there are: internal/refusal has a row for each. The errors of the rooms below
// become refusals by finders, the first that fits: in the order of the causes.
var (
	Causes                 []Cause
	finders, systemFinders []func(error) *Refusal
)

// own is a cause that the engine itself names, without facts.
func own(code Code, name string) Cause { return added(Cause{Code: code, Name: name}) }

// With is a cause with facts of type F.
func With[F any](code Code, name string) Cause { return added(Cause{code, name, (*F)(nil)}) }

func added(c Cause) Cause {
	Causes = append(Causes, c)
	return c
}

// Typed is the cause of errors of one type, which are their own facts. A dialect declares what
// only it can meet.
func Typed[E error](code Code, name string) Cause {
	c := With[E](code, name)
	finders = append(finders, func(err error) *Refusal {
		e, ok := errors.AsType[E](err)
		if !ok {
			return nil
		}
		return &Refusal{code, c, pathOf(e), e, err}
	})
	return c
}

// named is the cause of errors that are this one.
func named(code Code, name string, is error) Cause {
	c := own(code, name)
	finders = append(finders, finder(c, is))
	return c
}

// system is the cause of what the system says, or the context. It comes last: others wrap these.
func system(code Code, name string, is ...error) Cause {
	c := own(code, name)
	systemFinders = append(systemFinders, finder(c, is...))
	return c
}

func finder(c Cause, is ...error) func(error) *Refusal {
	return func(err error) *Refusal {
		if !slices.ContainsFunc(is, func(e error) bool { return errors.Is(err, e) }) {
			return nil
		}
		return &Refusal{c.Code, c, pathOf(err), nil, err}
	}
}

// pathOf is the path that an error from below names.
func pathOf(err error) string {
	switch e := err.(type) {
	case *guardfs.BadPathError:
		return e.Path
	case *policy.OutOfScope:
		return e.Path
	case *policy.Denied:
		return e.Path
	case *policy.ChainError:
		return e.Path
	case *guardfs.SymlinkError:
		return e.Path
	case *guardfs.NotRegularError:
		return e.Path
	case *guardfs.MissingParentError:
		return e.Path
	case *guardfs.TooLargeError:
		return e.Path
	case *guardfs.ConflictError:
		return e.Path
	}
	if e, ok := errors.AsType[*guardfs.PathError](err); ok {
		return e.Path
	}
	return ""
}

// Reason is an error as facts, nil when it is no refusal: the host is broken, or closed. An error
// that nobody knows is Unknown: who knows that the host is broken says so.
func Reason(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	for _, find := range finders {
		if r := find(err); r != nil {
			return r
		}
	}
	if errors.Is(err, ErrHost) || errors.Is(err, ErrClosed) {
		return nil
	}
	for _, find := range systemFinders {
		if r := find(err); r != nil {
			return r
		}
	}
	return &Refusal{Code: Unknown.Code, Cause: Unknown, Err: err}
}

// ErrHost marks trouble of our own: the host is broken, not the request. errors.Is finds it under
// any wrapping.
var ErrHost = errors.New("the host is broken")

// A hostError is our own disk, log or store failing.
type hostError struct {
	doing string
	err   error
}

func (e *hostError) Error() string   { return e.doing + ": " + e.err.Error() }
func (e *hostError) Unwrap() []error { return []error{ErrHost, e.err} }

// notSaved refuses a change whose pre-state could not be stored. Nothing was changed.
func notSaved(err error) error {
	return &Refusal{NotSaved.Code, NotSaved, "", err, &hostError{"storing the checkpoint", err}}
}
