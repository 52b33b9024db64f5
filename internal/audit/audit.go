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

// Record is one line. Zero fields are left out, except for Time and Phase.
type Record struct {
	Time  time.Time
	Phase string // "intent", before anything is changed, or "outcome"
	Call  string // joins the two

	PID    int    // the process that writes; filled in by Append, as User is
	User   string // of the system, under whom it runs
	Where  string // the call ran: "host" or the name of a sandbox; "": there are none
	Client string // name and version of the program that called, as it says itself
	By     string // "agent" or "person"

	Dialect, Tool string // the tool is one of that dialect; of "operator", what was done

	Principal, Session, Turn string

	Paths         []string // real names
	Injected      []string // arguments that a gateway put beside those of the model
	Pattern       string   // what a search looked for; the program that was to run
	Window        string   // which part was asked for
	Outcome       string   // "ok", or the kind of the refusal
	DryRun        bool     // the call only asked what would change
	Decision      string   // "allowed" or "denied"
	Rule          string   // what denied: "deny_paths", "secret", …
	Approval      string   // "approved by terminal", "denied by ann: not that file", "timed_out", …; cut as Error
	Digest        string   // of the plan that was approved
	Checkpoint    string   // its id
	Before, After string   // SHA-256 of the content, in hex
	Bytes         int64    // of content written, or given in the answer
	Duration      time.Duration
	Hooks         []string // what hooks changed, blocked or failed to do
	Alert         string   // that the caller sent to the operator
	Version       string   // of the program that starts
	Policy        string   // SHA-256 of the configuration that holds from here on, in hex
	Error         string   // cut at 4 KiB
}
