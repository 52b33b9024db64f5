// Package tools is the suite that agents call by name: Read, Write, Edit,
// MultiEdit, NotebookEdit, Glob, Grep and the checkpoint tools, with the
// arguments that Claude Code and Moltis trained models on, behind one policy.
//
//	cfg, err := config.Decode(data, "moltis.toml") // or config.Default()
//	suite, err := tools.Open(cfg, tools.Options{DataDir: dir, Approver: ask})
//	defer suite.Close()
//	call := tools.Call{Principal: "ci", Session: "s1", Tool: "Edit", Args: raw}
//	payload, err := suite.Call(ctx, call)
//	data, err := tools.Encode(payload)      // JSON whose first key is "kind"
//	text := payload.Text()                  // the same for a model that reads text
//	defs := suite.Definitions()             // what may be called, as JSON Schemas
//
// A host that makes calls of its own writes them with types, and asks its users by an [Approver]:
//
//	done, err := tools.Do[*tools.Edit](ctx, suite, tools.EditArgs{…}, tools.Call{Session: "s1"})
//	_, err = suite.Undo(ctx, tools.Call{Session: "s1"})
//
// A host in an editor hands in that one's unsaved text with each call, see [Editor].
//
// # Answers
//
// A call answers one of a sealed set of payloads. A *Refusal is an answer too. Its Error says what
// is so, and its Hint is the next move in one sentence. Next, where there is one, is a call that
// can be sent as it stands.
//
// Call returns an error when the host is broken: a full disk under our own data directory, an audit
// log that can't be written. *UnknownToolError means that there is no such tool, ErrClosed that
// Close was called, context.Canceled that the call was cancelled. An error never means that the model asked for something impossible.
//
// # Guarantees
//
//   - A refused call has changed nothing. (When a hook withholds an answer, the answer says that
//     the call has ended.)
//   - Every path is judged by its true name, by handle, at the moment of use. Links lead nowhere
//     that the policy doesn't allow. A denied path answers the same whether or not it exists.
//   - A change lands whole or not at all, only over the bytes that it was computed from, and only
//     after the person saw exactly that change, where approval is required.
//   - Every call, refused ones included, is in the audit log before its answer.
//   - What an answer leaves out, it counts.
//
// # Not guaranteed
//
//   - It guards its own calls. An agent that also has a shell is not held by it.
//   - A foreign program that writes to a file in the instant of the exchange is noticed, and the
//     call is a conflict. A program that keeps the old file open goes on writing to that file.
//   - Outside Linux a path is held as firmly as os.Root does it; Suite.Containment says so.
//
// # Concurrency
//
// A Suite is safe for concurrent use, and many processes may share a data
// directory: changes of one file wait for each other. Approvers are asked with no
// lock held. Close waits for the calls under way, takes back their questions, and
// may be called again.
//
// One tool is one file, one row in [All] and its golden calls under
// testdata/calls.
package tools
