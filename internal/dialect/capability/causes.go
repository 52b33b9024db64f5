package capability

import (
	"fmt"
	"slices"
	"strings"

	"moltisfs/internal/engine"
	"moltisfs/internal/nearest"
	"moltisfs/internal/text"
)

// An encodingError is of bytes that are no text in the encoding that was asked for.
type encodingError struct{ encoding string }

func (e *encodingError) Error() string { return fmt.Sprintf("%.300s", e.encoding) }

// A noEncodingError is of a name that no encoding has.
type noEncodingError struct{ name string }

func (e *noEncodingError) Error() string {
	names, name := append(text.Names(), binary), strings.ToLower(e.name[:min(len(e.name), 64)])
	slices.SortStableFunc(names, func(a, b string) int {
		return nearest.Distance(name, a) - nearest.Distance(name, b)
	})
	return fmt.Sprintf("there is no encoding %.100q; near it are %s", e.name, strings.Join(names[:3], ", "))
}

var (
	noEncoding   = engine.Typed[*noEncodingError](engine.CodeBadRequest, "no_encoding")
	undecodable  = engine.Typed[*encodingError](engine.CodeBadRequest, "undecodable")
	countDiffers = engine.Typed[*engine.CountError](engine.CodeConflict, "count_differs")
)

// ownKind has the types that the text gives some capabilities for a cause: the first that the
// capability has. Where it has none, that of the row counts.
var ownKind = map[engine.Cause][]string{
	engine.Absent:       {"FileNotFound", "DirectoryNotFound"},
	engine.LinkLoop:     {"FileNotFound", "DirectoryNotFound"},
	engine.Conflicts:    {"DestinationExists"},
	engine.BothKinds:    {"DestinationExists"},
	engine.NoCheckpoint: {"NotInTrash"},
	engine.BadID:        {"NotInTrash"},
}

// untouched ends a message about a change that was refused.
const untouched = "; nothing was changed"

// rows has one for each cause.
var rows = map[engine.Cause]row{
	engine.HalfMade: {kind: "PartlyDone",
		message: "the change failed half-way and could not be taken back as a whole: {fact}"},
	engine.BadName: {kind: "InvalidArgument",
		message: "the name of the {fact} is too long or is not printable text"},
	engine.BadArgument: {kind: "InvalidArgument", message: "{fact}"},
	engine.BadPath: {kind: "InvalidArgument",
		message: "{fact}; paths are absolute"},

	engine.OutOfScope: {kind: "PathOutOfScope", message: "{path} is out of scope"},
	engine.Denied:     {kind: "PathOutOfScope", message: "{path} is out of scope"},
	engine.Pseudo:     {kind: "PathOutOfScope", message: "{path} is out of scope"},
	engine.Hidden: {kind: "PathOutOfScope",
		message: "something below {path} is out of scope" + untouched},

	engine.IsLink: {kind: "SymlinkRefused",
		message: "{path} is, or leads through, a symbolic link" + untouched},
	engine.NotRegular:    {kind: "NotAFile", message: "{shown} is no regular file"},
	engine.ParentMissing: {kind: "ParentNotFound", message: "a directory above {path} does not exist"},
	engine.FileTooLarge:  {kind: "FileTooLarge", message: "{path} has more than is taken at once"},
	engine.ChangedAtOnce: {kind: "Conflict", retry: true,
		message: "somebody else changed {shown} at the same moment" + untouched},
	engine.Locked: {kind: "Conflict", retry: true, after: 1,
		message: "another call is changing {path}" + untouched},
	engine.Unsettled: {kind: "Conflict", retry: true, after: 1,
		message: "cannot determine yet whether the interrupted change {fact} completed" + untouched},
	engine.NotEmpty: {kind: "DirectoryNotEmpty", message: "the directory {shown} is not empty"},

	engine.UnsavedText: {kind: "UnsavedText",
		message: "{shown} has unsaved text in an editor" + untouched},
	engine.BufferDiffers: {kind: "FileModified",
		message: "{shown} has unsaved text in an editor, and has changed on the disk too" + untouched},
	engine.ClientFailed: {kind: "UnsavedText", retry: true,
		message: "the editor did not answer for {shown}: {fact}"},

	engine.Unread: {kind: "ReadRequired",
		message: "this session has not read {path}" + untouched},
	engine.PartUnread: {kind: "ReadRequired",
		message: "this session has read only a part of {path}" + untouched},
	engine.LinesUnseen: {kind: "ReadRequired",
		message: "this session has read only a part of {path}" + untouched},
	engine.DropsUnseen: {kind: "ReadRequired",
		message: "this session has read only a part of {path}" + untouched},
	engine.NotAsShown: {kind: "NotText",
		message: "{shown} is a file of kind {fact}, not text" + untouched},
	engine.Modified: {kind: "FileModified",
		message: "{path} changed since this session read it" + untouched},
	engine.Unexpected: {kind: "FileModified",
		message: "{path} is not the content that was expected" + untouched},
	engine.ReadOnly: {kind: "PermissionDenied",
		message: "{shown} is read-only ({fact})" + untouched},

	engine.OverBinary: {kind: "NotText",
		message: "{path} is a file of kind {fact}, and the content is not" + untouched},
	engine.Accident: {kind: "InvalidArgument",
		message: "the new content looks like an accident" + untouched},
	engine.NoMatch:     {kind: "InvalidArgument", message: "{fact}"},
	engine.NotUnique:   {kind: "InvalidArgument", message: "{fact}"},
	engine.Unencodable: {kind: "EncodingError", message: "the content cannot be written so: {fact}"},
	engine.DamagedBytes: {kind: "EncodingError",
		message: "{fact}" + untouched},
	engine.OldEmpty:     {kind: "InvalidArgument", message: "{fact}"},
	engine.OldIsNew:     {kind: "InvalidArgument", message: "{fact}"},
	engine.NoChange:     {kind: "InvalidArgument", message: "{fact}"},
	engine.BadEncoding:  {kind: "EncodingError", message: "{fact}"},
	engine.TooManyEdits: {kind: "InvalidArgument", message: "{fact}"},
	engine.ResultTooLarge: {kind: "FileTooLarge",
		message: "{path} would have more bytes than are taken at once" + untouched},
	engine.BadWindow: {kind: "InvalidArgument", message: "nothing of {path} begins at {fact}"},

	engine.NotApproved: {kind: "ApprovalDenied", message: "the change was not approved: {fact}"},
	engine.RunsCode: {kind: "ApprovalUnavailable",
		message: "{path} runs code later, or tells an agent what to do (class exec): a change of it " +
			"takes approval of its own, and there is none" + untouched},
	engine.NobodyToAsk: {kind: "ApprovalUnavailable",
		message: "the change needs approval and nobody can be asked" + untouched},
	engine.NotAnswered: {kind: "ApprovalTimeout", retry: true,
		message: "nobody answered the approval question in time" + untouched},
	engine.ApprovalStale: {kind: "ApprovalStale", retry: true,
		message: "{path} changed while the approval was pending" + untouched},
	engine.TierBlocked: {kind: "CapabilityBlocked",
		message: "this capability is blocked for this caller; nothing was done"},
	engine.HookBlocked: {kind: "BlockedByHook", message: "{fact}"},
	engine.ChainFailed: {kind: "PolicyUnavailable",
		message: "the operator's policies could not decide about {path}, so the call is refused"},
	engine.HookFailed: {kind: "PolicyUnavailable",
		message: "a hook of the operator could not answer, so the call is refused"},
	engine.Withheld: {kind: "AnswerWithheld",
		message: "the call has ended, and its answer is withheld"},

	engine.Conflicts: {kind: "Conflict", message: "something is at {fact} already" + untouched},
	engine.BothKinds: {kind: "Conflict", message: "something is at {fact} already" + untouched},
	engine.NotStored: {kind: "NotRecoverable",
		message: "{shown} cannot be kept, or is kept no more: {fact}" + untouched},
	engine.WouldLose: {kind: "NotRecoverable",
		message: "what is at {shown} now cannot be kept" + untouched},
	engine.NoTrash: {kind: "NotRecoverable",
		message: "{path} cannot be put into the trash: {fact}" + untouched},
	engine.NotInPlan:    {kind: "InvalidArgument", message: "that is no part of the change"},
	engine.TooManyPaths: {kind: "TooManyEntries", message: "one call changes at most {fact} paths"},
	engine.TooManyEntries: {kind: "TooManyEntries",
		message: "there are more than {fact} entries in {shown}"},
	engine.IntoItself: {kind: "InvalidArgument",
		message: "source and destination are the same, or one lies in the other"},

	engine.BadGlob:     {kind: "InvalidPattern", message: "{fact}"},
	engine.BadPattern:  {kind: "InvalidPattern", message: "{fact}"},
	engine.NoFileType:  {kind: "InvalidArgument", message: "{fact}"},
	engine.Unwatchable: {kind: "WatchUnsupported", message: "changes cannot be watched at {path}"},
	engine.TooManyWatches: {kind: "TooManyWatches",
		message: "the system lets us watch no more: {fact}"},

	engine.BadID:          {kind: "InvalidArgument", message: "{fact}"},
	engine.AmbiguousLabel: {kind: "InvalidArgument", message: "{fact}"},
	engine.AmbiguousTurn:  {kind: "InvalidArgument", message: "the turn does not say which"},
	engine.PartialHistory: {kind: "NotRecoverable", message: "{fact}"},
	engine.NoCheckpoint:   {kind: "NotInTrash", message: "there is no such entry"},
	engine.NothingToUndo:  {kind: "NotInTrash", message: "there is nothing to take back"},
	engine.BadRestore:     {kind: "InvalidArgument", message: "{fact}"},
	engine.NotSaved: {kind: "StoreUnavailable",
		message: "the checkpoint could not be stored" + untouched},
	engine.StoreDiskFull: {kind: "StoreUnavailable",
		message: "the disk of the store is full" + untouched},
	engine.StoreGone: {kind: "StoreUnavailable", message: "the store is gone" + untouched},
	engine.StoreBusy: {kind: "StoreUnavailable", retry: true, after: 1,
		message: "the store is busy" + untouched},
	engine.StoreReadOnly: {kind: "StoreUnavailable", message: "the store is read-only" + untouched},
	engine.StoreInUse: {kind: "StoreUnavailable", retry: true,
		message: "the store is in use" + untouched},
	engine.Sealed: {kind: "StoreUnavailable", message: "the store is encrypted, not for us"},
	engine.CorruptContent: {kind: "NotRecoverable",
		message: "the stored copy is damaged and was not used"},

	engine.Absent:        {kind: "FileNotFound", message: "{path} does not exist"},
	engine.NotPermitted:  {kind: "PermissionDenied", message: "the system does not let us: {path}"},
	engine.NotADirectory: {kind: "NotADirectory", message: "{path}, or a part of it, is a file"},
	engine.LinkLoop:      {kind: "FileNotFound", message: "{path} is a loop of symbolic links"},
	engine.NameTooLong:   {kind: "InvalidArgument", message: "{path} has a name that is too long"},
	engine.DiskFull:      {kind: "DiskFull", message: "the disk is full" + untouched},
	engine.DiskReadOnly:  {kind: "PermissionDenied", message: "{path} is on a disk that is read-only"},
	engine.SystemError:   {kind: "IOError", message: "the system failed for {path}: {fact}"},
	engine.NoAnswer:      {kind: "NoAnswer", message: "the file system does not answer; {fact}"},
	engine.Unavailable: {kind: "SandboxUnavailable", retry: true, after: 1,
		message: "the sandbox where this call has to run can't be reached"},
	engine.TooManyCalls: {kind: "TooManyCalls", retry: true, message: "too many calls: {fact}"},
	engine.TookTooLong:  {kind: "Timeout", retry: true, message: "the call took too long"},
	engine.Cancelled:    {kind: "Cancelled", retry: true, message: "the call was cancelled"},
	engine.Unknown:      {kind: "IOError", message: "the call failed for a reason that is not known"},
	countDiffers:        {kind: "CountMismatch", message: "there would be {fact} replacements" + untouched},
	noEncoding:          {kind: "EncodingError", message: "{fact}"},
	undecodable:         {kind: "EncodingError", message: "{path} cannot be decoded as {fact}"},
}
