// Package audit records what was asked and what became of it: one JSON object per line, in files that
// are only ever appended to.
//
// A Log has two of them, of one kind. DIR-changes/audit.jsonl has the records of changes, of what
// operators do and of starts; DIR/audit.jsonl has all others. So records of changes stay, however
// many reads come. Read gives both, in the order of time.
//
// Each record has a number and the hash of the line before, so that Verify finds what was changed or
// is missing. DIR/audit.last holds the number and the hash of the last one. See chain.go and
// docs/decisions/0042-a-log-that-proves-itself.md.
//
// Many processes may have a Log open at once: who writes has the lock of audit.last. When a file has
// grown to its limit, its last record says so, and it is moved to audit.jsonl.1. The former .1 becomes
// .2 and so on, and the last one goes. A record is reported as written only when its file still had a
// name after the write. After a crash or on a full disk a line may be broken. The next record begins
// a line of its own.
//
// A record survives the death of the process. A power cut may take the last ones: nothing is
// synced. Records hold names and hashes, never the content of a file. Directories have mode 0700,
// files 0600.
//
// A Log is safe for concurrent use. On Windows only one process at a time may have it open.
package audit

import "time"

// Record is one line. Zero fields are left out, except for Time and Phase. Fields follow in the order
// of the line, and the tags are their names there.
type Record struct {
	Time  time.Time `json:"time"`
	Phase string    `json:"phase"` // "intent", before anything is changed, or "outcome"
	Call  string    `json:"call"`  // joins the two

	Dialect string `json:"dialect"` // the tool is one of that dialect; of "operator", what was done
	Tool    string `json:"tool"`

	Principal string `json:"principal"`
	Session   string `json:"session"`
	Turn      string `json:"turn"`

	PID    int    `json:"pid"`    // the process that writes; filled in by Append, as User is
	User   string `json:"user"`   // of the system, under whom it runs
	Where  string `json:"where"`  // the call ran: "host" or the name of a sandbox; "": there are none
	Client string `json:"client"` // name and version of the program that called, as it says itself
	By     string `json:"by"`     // "agent" or "person"

	Paths      []string      `json:"paths"`      // real names
	Injected   []string      `json:"injected"`   // arguments that a gateway put beside those of the model
	Pattern    string        `json:"pattern"`    // what a search looked for; the program that was to run
	Window     string        `json:"window"`     // which part was asked for
	Outcome    string        `json:"outcome"`    // "ok", or the kind of the refusal
	DryRun     bool          `json:"dry_run"`    // the call only asked what would change
	Decision   string        `json:"decision"`   // "allowed" or "denied"
	Rule       string        `json:"rule"`       // what denied: "deny_paths", "secret", …
	Approval   string        `json:"approval"`   // "approved by terminal", "denied by ann: not that file", "timed_out", …
	Digest     string        `json:"digest"`     // of the plan that was approved
	Checkpoint string        `json:"checkpoint"` // its id
	Before     string        `json:"before"`     // SHA-256 of the content, in hex
	After      string        `json:"after"`
	Bytes      int64         `json:"bytes"`       // of content written, or given in the answer
	Duration   time.Duration `json:"duration_us"` // written in microseconds
	Hooks      []string      `json:"hooks"`       // what hooks changed, blocked or failed to do
	Alert      string        `json:"alert"`       // that the caller sent to the operator
	Version    string        `json:"version"`     // of the program that starts
	Policy     string        `json:"policy"`      // SHA-256 of the configuration that holds from here on, in hex
	Error      string        `json:"error"`
}
