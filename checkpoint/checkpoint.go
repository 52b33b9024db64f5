// Package checkpoint keeps what files were before an agent changed them. Every change can be
// undone, and every undo can be undone.
//
// A checkpoint holds one call's complete pre-state: every path that the call is about to change,
// and the state that it intends to leave there. It costs what the change costs, not what the
// repository weighs: a 10 KB file that is edited over and over takes about half a kilobyte an edit,
// catalog and indexes included.
//
// The package stores, finds and plans. It opens files in its own directory, or a database and a bucket,
// and never touches the tree of the agent. Plan answers which path should become what; the caller carries that out
// through its own guarded doors, and saves a checkpoint of that too.
//
//	db, err := checkpoint.Open(dir, checkpoint.Options{})
//	saved, err := db.Save(ctx, checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit,
//		Session: "s1", Changes: …}) // durable
//	… publish the new content …
//	plan, err := db.Plan(ctx, checkpoint.Restore{ID: saved.ID, Session: "s1"})
//
// # Guarantees
//
//   - When Save returns, pre-states and intended post-states are on stable storage, in one
//     transaction.
//   - Content is compared with its SHA-256 before a byte of it is handed out. Damage is a
//     *CorruptError, never other bytes.
//   - An ID is drawn and never given out again. A mistyped one is a *BadIDError or ErrNotFound; it finds
//     no other checkpoint.
//   - A session sees its own history only. Another session's checkpoint answers ErrNotFound,
//     exactly like one that does not exist, unless the caller says AllSessions.
//   - Options.MaxBytes bounds the store beside its log. A save that can't be made to fit fails with
//     *FullError, and the caller must not make the change. Purge writes the store anew, and takes as
//     much again while it runs.
//   - A damaged catalog is moved aside, never changed: see Open.
//   - In PostgreSQL all this holds as far as the server keeps what it confirmed. A server that is set not
//     to is refused. Its pages, logs, replicas and backups are its operators': Check does not look at
//     them, and Purge does not reach what they hold of rows that are gone.
//   - A content that is not stored is named: Saved.Skipped, and Missing of a plan's item.
//
// # Does not
//
//   - It does not know whether the announced change took place. The planner presumes it did; Settle
//     says otherwise. An operation with a tag (Op.Tag) is open until then: it may be half made, and
//     nothing takes it. Both states are recorded, so that a caller who finds the disk in one of
//     them knows where it stands (Item.Expects).
//   - It does not merge, compare or move files. It hands out the hashes to do it with.
//   - It does not see what nobody tells it. Changes by a shell are found by comparing the disk with
//     Known.
//   - Encryption (Options.EncryptTo) covers content, not the catalog. Paths, sizes, times and
//     hashes are in clear.
//
// # Concurrency
//
// All methods of DB may be called from many goroutines. A save is one transaction; of several, in this
// process or others, one waits for the other. Many processes may have one store open. The directory
// must be on a local file system: Open refuses network file systems. A store in PostgreSQL
// (Options.Database) may be open on many machines. There all writers wait for one lock of the server: a
// save holds it for about nine times as long as a message takes there and back, and that bounds the saves
// of all machines together. Large contents are written before that, so that whoever waits for them holds up
// nobody else.
//
// # Where things are
//
// The catalog is a database that the package uses by plain SQL, but for sqlite.go, postgres.go and
// schema.go. Large contents are in a blob.Store: of files, or of S3. Package checkpointtest has what
// another catalog or another blob.Store has to pass. Copy takes operations from one store into another,
// and Ship sends those of a local store to a remote one behind the calls that make them.
package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"moltisfs/checkpoint/blob"
	"moltisfs/internal/ids"
)

// ID names a checkpoint towards people and models: "ck-" and ten characters that are drawn for it.
type ID string

const (
	checkpointPrefix = "ck-"
	trashPrefix      = "tr-"
)

// ParseID checks s and returns it in its canonical spelling.
func ParseID(s string) (ID, error) {
	id, err := parseID(checkpointPrefix, s)
	return ID(id), err
}

// ParseTrashID is ParseID for an entry of the trash.
func ParseTrashID(s string) (TrashID, error) {
	id, err := parseID(trashPrefix, s)
	return TrashID(id), err
}

func parseID(prefix, s string) (string, error) {
	id, why := ids.Parse(prefix, s)
	if why != "" {
		return "", &BadIDError{s[:min(len(s), 64)], why}
	}
	return id, nil
}

// Kind is the kind of the object at a path.
type Kind string

// The kinds of objects at a path. The zero Kind is read as Absent.
const (
	Absent  Kind = "absent"
	File    Kind = "file"
	Symlink Kind = "symlink"
	Dir     Kind = "dir"
)

// Kinds of operations. Others may be used. To the planner three mean something: KindExternal,
// KindRead and KindManual changed nothing on behalf of the session, so a rewind and an undo pass
// over them.
const (
	KindWrite     = "write"
	KindEdit      = "edit"
	KindMultiEdit = "multiedit"
	KindAppend    = "append"
	KindDelete    = "delete"
	KindMove      = "move"
	KindCopy      = "copy"
	KindMkdir     = "mkdir"
	KindRun       = "run" // what a program has left
	KindRestore   = "restore"
	KindExternal  = "external" // somebody else changed it; recorded when noticed
	KindRead      = "read"     // the mode of a directory, kept in case it has to come back
	KindManual    = "manual"   // a mark set by a person
	KindImport    = "import"   // taken over from another store; planned like a change
)

// RoleParent is the role of a directory that was made only to hold the target. A restore removes it
// when it is empty. Other roles ("target", "src", "dst") are kept as given.
const RoleParent = "parent_dir"

// State describes a path, as it is or was. Kind says which fields mean something: Target is for a Symlink,
// Size and Hash are for a File.
type State struct {
	Kind     Kind
	Mode     fs.FileMode // permission bits, setuid, setgid, sticky
	UID, GID uint32
	ModTime  time.Time // zero: not known
	Xattrs   map[string][]byte
	Target   string // of a symlink
	Size     int64
	Hash     string // SHA-256 of the content, lower-case hex; "" when nobody computed it
	// Tail is, of an appended file (RoleAppended), the SHA-256 of what it has beyond the other state.
	// Content has that.
	Tail string
}

// Same reports whether s and o have the same content: the kind, the hash, the link's target. Mode,
// owner and times are not compared: a touch is no change. Where nobody computed a file's hash, size
// and time have to be the same.
func (s State) Same(o State) bool {
	if s.kind() != o.kind() || s.Target != o.Target {
		return false
	}
	if s.kind() == File && (s.Hash == "" || o.Hash == "") {
		return s.Size == o.Size && !s.ModTime.IsZero() && s.ModTime.Equal(o.ModTime)
	}
	return s.Hash == o.Hash
}

func (s State) kind() Kind {
	if s.Kind == "" {
		return Absent
	}
	return s.Kind
}

// Change is one path of an Op.
type Change struct {
	Path   string // canonical and absolute
	Role   string // "target", "src", "dst", RoleParent
	Before State
	After  State // intended

	// Content holds the bytes of the file before the change; nil when there is no file or Skipped says
	// why not. Save fills in Before.Hash where it is empty, and refuses one that is not that of
	// Content. From Save on Content and AfterContent belong to the store: nobody may change the
	// bytes.
	Content []byte
	// AfterContent holds the bytes of the file after the change. Optional. With it redo, inverse and diff do not
	// depend on what is on the disk later. Over a series of edits it costs nothing, because it is
	// the Content of the next one.
	AfterContent []byte

	// Tail holds the bytes of the larger state beyond the smaller one: see RoleAppended.
	Tail []byte

	// Skipped is why Content is not there, if the caller knows: SkipTooLarge, SkipExcluded, or
	// words of its own.
	Skipped string

	Moved

	// Trash puts the path into the trash with the same transaction. Of it Expires, Agent, Parked,
	// Files and Identity are read; the rest follows from the Op.
	Trash *Trashed
}

// Moved is set, of RoleTree, where an object got another name: To at its old path, From at its new one, and at
// both which object it is, in the caller's words.
type Moved struct {
	To       string `json:",omitempty"`
	From     string `json:",omitempty"`
	Identity string `json:",omitempty"`
}

// Why a content is not in the store.
const (
	SkipTooLarge = "too_large" // above MaxFileBytes
	SkipExcluded = "excluded"  // by Options.Exclude
	skipHashOnly = "hash_only" // the caller gave a hash only, and the store does not have it
	SkipNotRead  = "not_read"  // nor a hash
	SkipParked   = "parked"    // moved as a whole, to the trash or to another name
	SkipPurged   = "purged"
	SkipDamaged  = "damaged" // the store that the operation was copied from has lost it
)

// Op is the change that one call is about to make.
type Op struct {
	Tool, Kind         string
	Principal, Session string
	Turn, Label        string
	Time               time.Time // zero: now
	UndoOf             ID        // this one takes that one back: an undo or, of an undo, a redo
	RestoreOf          ID        // this operation restores the state before that one
	Run                int64     // of a script that makes the change; one undo takes back all of it
	Changes            []Change
	Opening
}

// Opening is set where an operation is saved before it takes place. A Tag makes it open: nothing
// takes it until Settle, see DB.Open. The caller draws it, up to 64 bytes; by it processes tell each
// other that the operation's host is alive. Steps are the caller's own, for whoever finds the
// operation open.
type Opening struct {
	Tag   string
	Steps []byte
}

// Saved is the answer to a Save.
type Saved struct {
	ID      ID
	Skipped []Skip    // content that was not stored; the change must say so to whoever asked for it
	Trashed []Trashed // entries that Change.Trash made
}

// Skip names a path whose content is not in the store, and why.
type Skip struct {
	Path string
	Why  string // SkipTooLarge, SkipExcluded, "hash_only" (no content), or what Change.Skipped said
	Size int64
}

// Outcome is the end of an operation.
type Outcome string

// Outcomes. The planner treats Presumed like Committed and passes over Aborted. The result of a
// Foreign one is not what was announced.
const (
	Presumed  Outcome = "" // saved; nobody said more
	Committed Outcome = "committed"
	Aborted   Outcome = "aborted" // the change did not take place
	Foreign   Outcome = "foreign" // somebody else wrote in between
)

// Checkpoint is an Op as the store keeps it.
type Checkpoint struct {
	ID                 ID
	Time               time.Time
	Tool, Kind         string
	Principal, Session string
	Turn, Label        string
	Outcome            Outcome
	Pinned             bool
	UndoOf, RestoreOf  ID
	UndoneBy           ID `json:",omitempty"` // the undo of this one that holds; of an undo, the redo
	Changes            []Recorded
}

// Recorded is one path of a Checkpoint.
type Recorded struct {
	Path, Role    string
	Before, After State
	Stored        bool   // content of Before can be had by Content(Before.Hash)
	AfterStored   bool   // likewise of After
	Skipped       string // why content of Before is not stored
	AfterSkipped  string // SkipPurged or SkipDamaged: content of After is not stored any more
	Moved
}

// Errors that callers tell apart.
var (
	ErrNotFound = errors.New("no such checkpoint")
	ErrClosed   = errors.New("checkpoint store is closed")
	// ErrNoContent: the hash is known or was never seen, but its bytes are not in the store.
	ErrNoContent = errors.New("content is not in the checkpoint store")
	// ErrSealed: the bytes are there, encrypted to a key that this process does not hold.
	ErrSealed = blob.ErrSealed
	// ErrBusy: somebody else has been writing, reading or opening the store for too long to wait
	// any more. It may be stopped.
	ErrBusy = errors.New("another process has been using the checkpoint store for too long")
	// ErrReadOnly: the store is on a read-only file system. It can be looked at there.
	ErrReadOnly = errors.New("the checkpoint store is on a read-only file system")
	// ErrIdentity: one of Options.Identities is none.
	ErrIdentity = blob.ErrIdentity
	// ErrDamaged: the catalog can't be read. It is moved aside when it is opened and nobody else has it
	// open.
	ErrDamaged = errors.New("the catalog is damaged")
	// ErrInUse: another process has a store open that would have to be moved aside, or is doing that.
	ErrInUse = errors.New("the checkpoint store is in use")
	// ErrUnderWay: taking back a change that is being made needs what is to go.
	ErrUnderWay = errors.New("a change needs it that is being made at this moment; " +
		"purge again after that")
	// ErrCutOff: taking back a change that was cut off half-way, and whose process is no more, needs a content
	// that is to go. The next call of a host that may reach its paths takes it back; see
	// Purge.CutOff.
	ErrCutOff = errors.New("a change needs it that was cut off half-way and that the next call " +
		"in its root takes back; purge again after that")
	// ErrImported: an operation of KindImport has the label of one that its principal has imported
	// before.
	ErrImported = errors.New("it was imported before")
	// ErrNothing: there is nothing to undo or redo.
	ErrNothing = errors.New("nothing to undo or redo")
)

// BadIDError: the text is not the id of any checkpoint.
type BadIDError struct{ ID, Why string }

func (e *BadIDError) Error() string { return fmt.Sprintf("bad id %q: %s", e.ID, e.Why) }

// CorruptError: stored bytes are not what they were.
type CorruptError struct{ Hash, Why string }

func (e *CorruptError) Error() string {
	return fmt.Sprintf("checkpoint content %.12s is damaged: %s", e.Hash, e.Why)
}

// FullError: the content does not fit into MaxBytes even after everything that may go is gone: what
// is left is pinned, open or unsent. Unsent operations wait for the store that they are shipped to: see Ship.
type FullError struct {
	Bytes, Max int64
	Unsent     int
}

func (e *FullError) Error() string {
	s := fmt.Sprintf("checkpoint store is full: %d bytes of %d", e.Bytes, e.Max)
	if e.Unsent > 0 {
		s += fmt.Sprintf("; %d operations in it wait until the store that they are sent to can be reached", e.Unsent)
	}
	return s
}

// DiskFullError: there is no room on the disk of the store. SQLite needs a little even to read, for
// its log and the log's index, and more to delete. Nothing is lost: all works again when there is
// room.
type DiskFullError struct{ Err error }

func (e *DiskFullError) Error() string {
	return "the disk of the checkpoint store is full: " + e.Err.Error()
}

func (e *DiskFullError) Unwrap() []error { return []error{syscall.ENOSPC, e.Err} }

// GoneError: the store was removed or moved while this process has it open. Nobody would find what
// is saved to it. It is usable again when it is put back.
type GoneError struct{ Dir string }

func (e *GoneError) Error() string {
	return "the checkpoint store " + e.Dir +
		" was removed, moved away or replaced while this process has it open"
}

// VersionError: the store's format is one that must not be used.
type VersionError struct{ What, Have, Need string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s is %s, but %s is needed", e.What, e.Have, e.Need)
}

// NetworkError: the directory is on a file system that cannot keep the store's promises.
type NetworkError struct{ Dir, Type string }

func (e *NetworkError) Error() string {
	return fmt.Sprintf(
		"checkpoint store %s is on a network file system (%s); use a local directory",
		e.Dir, e.Type)
}

// SyncError: the disk did not confirm what was to be saved, or the connection to the database broke
// before its answer. It may be there or not, so the change must not be made. An operation with a tag is
// open then if it is there. Nothing more is accepted until the disk has confirmed all that was accepted
// before; of a database the next transaction waits until it has ended that one.
type SyncError struct{ Err error }

func (e *SyncError) Error() string {
	return "nobody confirmed a checkpoint: " + e.Err.Error()
}

func (e *SyncError) Unwrap() error { return e.Err }

// BadOpError: the caller's Op or Restore contradicts itself.
type BadOpError struct{ Path, Why string }

func (e *BadOpError) Error() string {
	if e.Path == "" {
		return "bad checkpoint request: " + e.Why
	}
	return fmt.Sprintf("bad checkpoint request: %s: %s", e.Path, e.Why)
}

// AmbiguousLabelError: several checkpoints carry the label. The store does not guess which one is
// meant.
type AmbiguousLabelError struct {
	Label string
	Carry []Labelled // oldest first
}

// Labelled is a checkpoint that carries a label.
type Labelled struct {
	ID      ID
	Time    time.Time
	Session string
}

func (e *AmbiguousLabelError) Error() string {
	return fmt.Sprintf("%d checkpoints carry the label %q", len(e.Carry), e.Label)
}

// Scope names the principal and session that ask. The zero Scope sees only checkpoints without either.
type Scope struct {
	Principal, Session string
	AllSessions        bool // the operator's view: every session, of Principal if that is not empty
}

// sees reports whether a checkpoint of principal and session is visible.
func (s Scope) sees(principal, session string) bool {
	if s.AllSessions {
		return s.Principal == "" || s.Principal == principal
	}
	return s.Principal == principal && s.Session == session
}

// Filter selects checkpoints. Principal and Session say who asks, as in Scope; with AllSessions
// they are filters too.
type Filter struct {
	Path         string   // exactly this path, and moves of directories above it
	Also         []string // other names of Path: their checkpoints count too
	PathContains string   // letters of either case
	Principal    string
	Session      string
	AllSessions  bool
	Turn         string
	Tool         string // or a kind, by which changes that no tool made are listed
	Kind, Label  string
	NoReads      bool      // leave out what was kept only because it was read
	Since, Until time.Time // inclusive, exclusive
	Limit        int       // 20 when 0; at most 1000
	Cursor       string    // Next of the page before
}

func (f Filter) scope() Scope { return Scope{f.Principal, f.Session, f.AllSessions} }

func (f Filter) limit() int {
	if f.Limit <= 0 {
		return 20
	}
	return min(f.Limit, 1000)
}

// Page is a list of checkpoints, those saved last first.
type Page struct {
	Checkpoints []Checkpoint
	Next        string // Cursor of the next page; "" when this is the last
}

// Known is a path of a session and its last recorded state, whoever recorded it.
type Known struct {
	Path   string
	State  State
	Stored bool // content of State is in the store
	// Before is the state that the newest operation found. Unless that is Settled the disk may be
	// in either state: the operation is open, and its host did not say that it was made.
	Before  State
	Settled bool
	// Own holds the last state that this session itself recorded. It differs from State where others were
	// at the path since.
	Own State
}
