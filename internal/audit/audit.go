// Package audit keeps the record of what was asked and what became of it: one JSON object a line, in a file that is only
// ever appended to.
//
// A Log may be open in many processes at once, all writing to DIR/audit.jsonl. Each record is one write with O_APPEND, so
// records don't mix; they stand in the order in which the system took them, which between processes need not be that of their
// times. When the file has grown over its limit, whoever notices moves it to audit.jsonl.1 (and .1 to .2, and so on,
// the last one going), under a lock. A record is reported as written only when it is in a file that was still
// there after the write. After a crash or a full disk a line may be broken, and may be followed by an empty one; the next
// record begins a line of its own.
//
// Append is a promise of the kernel, not of the disk: records survive the death of the process, and a power cut may take the
// last ones. They hold names and hashes and never the content of a file. Directories are made 0700, files 0600.
//
// A Log is safe for concurrent use. Where the system has no flock, only one process at a time may have the Log open.
package audit

import "time"

// Record is one line. Zero fields are left out, except for Time and Phase.
type Record struct {
	Time  time.Time
	Phase string // "intent", before anything is changed, or "outcome"
	Call  string // joins the two
	Tool  string

	Principal, Session string
	Paths              []string // true names
	Outcome            string   // "ok", or the kind of the refusal
	DryRun             bool     // the call asked what would be changed: nothing was
	Decision           string   // "allowed" or "denied"
	Rule               string   // what denied: "deny_paths", "protected", …
	Approval           string   // "approved by terminal", "timed_out", …
	Digest             string   // of the plan that was approved
	Checkpoint         string   // its id
	Before, After      string   // SHA-256 of the content, in hex
	Bytes              int64    // of content written or given
	Duration           time.Duration
	Hooks              []string // what hooks changed, blocked or failed to do
	Error              string   // cut at 4 KiB
}
