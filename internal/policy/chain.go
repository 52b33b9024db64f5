package policy

import "context"

// A Chain is the operator's own policy, for rules that lists of globs can't say. It is asked before the
// guard, which always runs after it: a chain narrows and never widens.
//
// Decide tells whether the operation may go on. An error is no decision, and denies; its text is
// shown to the caller. A Chain is safe for concurrent use.
type Chain interface {
	Decide(ctx context.Context, in Input) (allowed bool, err error)
}

// Input is one question to a chain. Rules see its JSON as input: fields that a call does not
// have are left out, never null.
type Input struct {
	// Operation is one of readFile, writeFile, appendFile, readdir, stat, mkdir, rm, rename,
	// copyFile and exists, in every dialect.
	Operation string `json:"operation"`
	// Path and Destination stand here as the caller wrote them; ".." is not taken out.
	Path        string            `json:"path"`
	Destination string            `json:"destination,omitempty"`
	Recursive   *bool             `json:"recursive,omitempty"`   // mkdir and rm
	Encoding    string            `json:"encoding,omitempty"`    // readFile: utf8 or buffer
	Headers     map[string]string `json:"mcp_headers,omitempty"` // X-MCP-*, without it, lower case
	// ResolvedPath and ResolvedDestination are absolute, with links followed: rules about places
	// are safe only on them.
	ResolvedPath        string `json:"resolved_path,omitempty"`
	ResolvedDestination string `json:"resolved_destination,omitempty"`
	Principal           string `json:"principal,omitempty"`
	Session             string `json:"session,omitempty"`
	Dialect             string `json:"dialect,omitempty"`
}

// RuleChain is Denied.Rule of a path that a chain does not allow.
const RuleChain = "policies"

// Undecided is the error of a Chain that came to no decision: no rule speaks of the input. That is
// no failure. It denies, and Why is for the operator.
type Undecided struct{ Why string }

func (e *Undecided) Error() string { return e.Why }

// ChainError is the refusal of a path of which a chain could not decide.
type ChainError struct {
	Path, Operation string
	Err             error
}

func (e *ChainError) Error() string { return "policy error: " + e.Err.Error() }
func (e *ChainError) Unwrap() error { return e.Err }
