package refusal

import (
	"syscall"

	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/readers"
	"moltisfs/readers/notebook"
)

// EncodingFacts are the name of an encoding that does not fit, and names near it.
type EncodingFacts struct{ Name, Near string }

// CellFacts are a cell of a notebook: its id, quoted, and its number from 1.
type CellFacts struct {
	ID   string
	Cell int
}

// GlobFacts are the globs of a list that lie outside of Root, all of it quoted.
type GlobFacts struct{ Root, Outside string }

// The causes that only one dialect meets.
var (
	NotShown     = engine.Typed[readers.Hinter](engine.CodeUnsupported, "not_shown")
	NotNotebook  = engine.Typed[*notebook.NotNotebookError](engine.CodeUnsupported, "not_a_notebook")
	NoSuchCell   = engine.Typed[*notebook.NoCellError](engine.CodeNoMatch, "no_cell")
	NoEncoding   = engine.With[EncodingFacts](engine.CodeBadRequest, "no_encoding")
	Undecodable  = engine.With[EncodingFacts](engine.CodeBadRequest, "undecodable")
	CountDiffers = engine.Typed[*engine.CountError](engine.CodeConflict, "count_differs")
	NotText      = engine.With[struct{}](engine.CodeUnsupported, "not_text")
	NotUTF8      = engine.With[string](engine.CodeUnsupported, "not_utf8") // where
	NoDirectory  = engine.With[struct{}](engine.CodeBadRequest, "no_directory")

	ShownDecoded       = engine.With[string](engine.CodeUnsupported, "shown_decoded")     // as what: email or notebook
	ReplacedBytes      = engine.With[string](engine.CodeNoMatch, "replacement_character") // the encoding that the call names
	CellUnseen         = engine.With[CellFacts](engine.CodeMustRead, "cell_unseen")
	SeveralDirectories = engine.With[GlobFacts](engine.CodeBadRequest, "several_directories")
)

// moments are the words of a dialect about a call. Those in may are clauses, "" where there is nothing to say.
var moments = []string{
	"plain",   // the path is well formed, but for the characters in it
	"root",    // the directory of the workspace
	"target",  // the path that a link leads to, which the caller may use
	"makes",   // the call may make directories
	"convert", // the call may write in another encoding
	"changes", // the call changes something
	"restore", // the call is a restore,
	"trash",   // of an entry of the trash,
	"undo",    // of the newest change,
	"merging", // by merging
	"named",   // the turn or the label that the call names
	"config",  // the file of the configuration
	"skip",    // how to leave a path alone; it may have {names}
	"by",      // the tool that reads
	"off",     // checkpoints are off
	"editor",  // an editor may have text that is not seen
	"offer",   // the kind of offer in place of an old_string that was not found
	"in",      // a file that has it, and that offer names
}

// Names are the tools and arguments that hints name, each as the tools of [tools.fs] call it, and line, by
// which an editor reads a part.
var Names = []string{"acknowledge", "cell_id", "checkpoints_list", "create_parents", "encoding", "expected_hash", "glob", "label", "line",
	"multiline", "old_string", "on_conflict", "paths", "replace_all", "since", "Edit", "Glob", "NotebookEdit", "Read", "Write"}

// Off is the clause off.
const Off = "; checkpoints are off (checkpoint_before_mutation = false): changes of single files can't be undone"

const (
	unchanged = "; nothing was changed"
	untouched = "; the file is untouched"

	closed     = "this session may not touch this path"
	another    = "{root?}Use another path, or ask the user; the workspace is {root}. | Use another path, or ask the user."
	readRest   = "Read all of it{by}, then write again."
	replaceAll = "Send {acknowledge}: true if all of it should be replaced."
	anId       = "Take an id from {checkpoints_list}; --session and --principal say whose history is meant."
	operators  = "{off?}Tell the user that only the operator can turn them on. | "
	context    = "Send one of contexts as {old_string} with new_string widened the same way, or set {replace_all} to change them all."
	unpin      = "make room: moltis-fs checkpoint unpin, moltis-fs store gc with lower numbers for keep_within or keep_last, or a larger max_bytes."
	whole      = "{Guard=empties}Set {acknowledge}: true if that is meant. | {Edits?}Send all of the new text, or a smaller {old_string}; {acknowledge}: true if the line is meant. | " +
		"Send the whole content, or use {Edit} for the part that changes; {acknowledge}: true if the line is meant. | Send the whole content."
	fewer    = "Make fewer or smaller replacements a call."
	parts    = "{restore?}{Dirs?}Restore it in parts, by its id, turn or since with paths in up to {Most} directories in {paths}; or "
	fewPaths = "{restore?}Restore it in parts, by its id, turn or since with up to {Most} of its paths, or directories that hold as many, in {paths}; or "
)

// rows has one for each cause.
var rows = map[engine.Cause]Row{
	engine.HalfMade: {Type: "PartlyDone",
		Says:   "the change failed half-way ({Err}), and {Left} could not be put back: what is there is changed, or may be | the change failed half-way and could not be taken back as a whole",
		Hint:   "{Marked?}The next start, and the next change of these paths, brings it to an end as soon as the system lets it. What others have changed since stays. Tell the user, and read these paths before going on. | {Checkpoint?}What was there is in checkpoint {Checkpoint}. Tell the user, and read these paths before going on. | Tell the user, and read what is there before going on.",
		Person: "{Marked?}The next start, and the next change of these paths, brings it to an end as soon as the system lets it. What others have changed since stays. | {Checkpoint?}What was there is in checkpoint {Checkpoint}. | Look at what is there before going on."},
	engine.PartTaken: {Type: "PartlyDone",
		Says: "{Back} went back (checkpoint {Checkpoints}), and the rest did not: {Err} | a part of it went back, and the rest did not",
		Hint: "What went back stands. Clear away what is in the way, then send the same call again: it goes on from there."},
	engine.BadName: {Type: "InvalidArgument",
		Says: "{Bytes?}the name of the {What} has {Bytes} bytes | the name of the {What} holds bytes that are not printable text",
		Hint: "{Bytes?}Use a shorter name. | Use printable characters."},
	engine.TooManyCalls: {Type: "TooManyCalls", Retry: true,
		Says:   "too many calls: {fact}" + unchanged,
		Hint:   "{Wait?}Call again in {Wait}. | {Limit?}Wait for the calls under way, then call again. | Tell the user that a file system hangs.",
		Person: "{Wait?}Call again in {Wait}. | {Limit?}Wait for the calls under way, then call again. | A file system hangs."},
	engine.NoRun: {Type: "PermissionDenied",
		Says:   "this can't be run: {Why}: {Err} | this can't be run: {Why}",
		Hint:   "{Do?}Do it with the other tools, or tell the user: {Do}. | Do it with the other tools, or tell the user.",
		Person: "{Do?}{Do}. | -"},
	engine.NoShell: {Type: "InvalidArgument",
		Says: "there is no such shell in the background, or its end was told",
		Hint: "{fact?}Use one of {fact}. | Start one by Bash with run_in_background."},
	engine.RunEnded: {Type: "Timeout",
		Says: "{Limit=time}the command took longer than {Most} and was ended; nothing that it changed was kept | " +
			"{Limit=disk}the command wrote more than {Most} and was ended; nothing that it changed was kept | the command had too many processes at once and was ended; nothing that it changed was kept",
		Hint: "{Limit=time}Send a larger timeout, split the work, or run it in the background. | {Limit=disk}Have it write less, or tell the user that disk in [tools.run] limits it. | " +
			"Have it start fewer processes.",
		Person: "{Limit=disk}disk in [tools.run] is the limit. | have it start fewer processes."},
	engine.TooManyShells: {Type: "TooManyCalls",
		Says: "{fact shells} run in the background already",
		Hint: "End one by KillShell, then call again."},
	engine.BadArgument: {Type: "InvalidArgument", Says: "{What}", Hint: "{Hint}"},

	engine.BadPath: {Type: "InvalidArgument", Errno: syscall.EINVAL,
		Says:   "{Path?}{path} is not a usable path: {Why} | the path is empty | {path} is not a usable path: {Why}",
		Hint:   "{plain?}Send the plain name of a file or directory: no slash at its end, no NUL byte, at most 255 bytes a name and 4095 in all. | {root?}Send an absolute path; the workspace is {root}. | Send an absolute path.",
		Person: "Write a plain path; a relative one is taken from the working directory."},
	engine.OutOfScope: {Type: "PathOutOfScope",
		Says:   "{Writable?}this path is outside of what this caller may change | this path is outside of what this caller may read",
		Hint:   "Use a path inside it, or ask the user.",
		Person: "Use a path inside it."},
	engine.Denied: {Type: "PathOutOfScope",
		Says: "{chain?}the operator's policies do not allow this for {path} | " +
			"{class=secret}{path} is closed: names like this are of the class secret (keys, passwords, tokens) | {class?}{path} is closed: names like this are of the class {class} | " + closed,
		Hint:   "{chain?}Do it another way, or tell the user; the same call is refused again. | {class?}Go on without it, or tell the user; the operator can lift that: {lift}. | " + another,
		Person: `{Rule=hard}The class "hard" closes it: it belongs to moltis-fs, and nothing opens it. | {class?}The class "{class}" closes it; {lift} lifts that, protect_{class} = "allow" for all. | {config?}See allow_paths and deny_paths in {config}, and --root. | --root names the directory that is open; nothing outside of it is.`},
	engine.Pseudo: {Type: "PathOutOfScope", Says: closed, Hint: another, Person: "Use another path."},
	engine.Hidden: {Type: "PathOutOfScope",
		Says:   "{undo?}the newest change lies where this session may not go today ({fact paths})" + unchanged + " | {restore?}it has {fact paths} out of what this session may touch today" + unchanged + " | this session may not touch something below {path}" + unchanged,
		Hint:   "{undo?}Tell the user. An older change is taken back by its id, from {checkpoints_list}; with {on_conflict} skip this one stays as it is, and the next call goes on with the change before it. | {restore?}Leave such paths alone with {on_conflict} skip, or name others in {paths}. | Use another path, or ask the user.",
		Person: "{undo?}Take an older change back by its id, from {checkpoints_list}; with {on_conflict} skip this one stays as it is, and the next call goes on with the change before it. | {restore?}Leave such paths alone with {on_conflict} skip, or name others in {paths}. | Use another path."},
	engine.IsLink: {Type: "SymlinkRefused",
		Says: "{restore?}a symbolic link is at {path} or on the way to it now" + unchanged + " | {target?}{path} is a symbolic link, and links are not written through; it leads to {target} | {path} is a symbolic link, and links are not written through",
		Hint: "{restore?}Move the link away first{skip}. | {target?}Use {target}. | Use the path of the real file."},
	engine.NotRegular: {Type: "NotAFile",
		Says: "{restore?}{path} is a {Kind} now" + unchanged + " | {path} is a {Kind}, not a regular file",
		Hint: "{restore?}Move it away first{skip}. | {Kind=directory}List it with {Glob}. | Only regular files can be read and changed."},
	engine.ParentMissing: {Type: "ParentNotFound", Errno: syscall.ENOENT,
		Says:   "the directory {Missing} does not exist | a directory above {path} does not exist",
		Hint:   "{makes?}Send it with {create_parents}: true to make it, or write into a directory that exists. | Write into a directory that exists, or make {Missing} first. | Write into a directory that exists.",
		Person: `{makes?}Say "{create_parents}": true, or make the directory with mkdir. | Make the directory with mkdir.`},
	engine.FileTooLarge: {Type: "FileTooLarge",
		Says: "{path} is {Size} bytes, over the limit of {Max}",
		Hint: "Read a part of it by {line} and limit. | Work on a smaller file, or split this one."},
	engine.ChangedAtOnce: {Type: "Conflict", Retry: true,
		Says: "{fact?}somebody else changed {at} at the same moment: {fact}; nothing was changed by this call | somebody else changed {at} at the same moment; nothing was changed by this call",
		Hint: "Read it again{by} and repeat the change."},
	engine.Locked: {Type: "Conflict", Retry: true, After: 1,
		Says:   "{Holder?}another call holds the lock on {path} ({Holder}) | another call holds the lock on {path}",
		Hint:   "Call again in a moment.",
		Person: "Call again in a moment; if it stays so, a process of moltis-fs stands still, and has to be ended."},
	engine.FleetGone: {Type: "StoreUnavailable", Retry: true, After: 1,
		Says:   "the {What} of the fleet can't be reached" + unchanged,
		Hint:   "Call again later, reads go on. If it stays so, tell the operator that the {What} of the fleet does not answer.",
		Person: "Try again when it is back, or mend [tools.fs.fleet]; moltis-fs status says why."},
	engine.Fenced: {Type: "StoreUnavailable", Retry: true, After: 1,
		Says: "this gateway was taken for dead by the others of its fleet while the call was under way" + unchanged,
		Hint: "Send the same call again."},
	engine.OtherView: {Type: "Conflict",
		Says:   "{path} is part of a change that was cut off on gateway {fact}, whose view of this volume differs from the one here: nobody can tell here what was made of it" + unchanged,
		Hint:   "Tell the operator to start moltis-fs there, or where the volume looks as it does there; the start brings the change to an end.",
		Person: "Start moltis-fs there, or where the volume looks as it does there; the start brings the change to an end."},
	engine.Unsettled: {Type: "Conflict", Retry: true, After: 1,
		Says:   "cannot determine yet whether the interrupted change {fact} completed" + unchanged,
		Hint:   "Call again in a moment. If it stays so, ask the user to end a process of moltis-fs that stands still and holds the locks of its files.",
		Person: "Call again in a moment. If it stays so, end the process of moltis-fs that stands still and holds the locks of its files."},
	engine.NotEmpty: {Type: "DirectoryNotEmpty", Errno: syscall.ENOTEMPTY,
		Says: "the directory {at} is not empty", Hint: "Delete what is in it first."},

	engine.UnsavedText: {Type: "UnsavedText",
		Says:   "{at} has unsaved text in the user's editor, which must be changed alone" + unchanged,
		Hint:   "Change this file by itself with {Write} or {Edit}, or ask the user to save it. | Ask the user to save it.",
		Person: "Save it in the editor, or change this file by itself."},
	engine.BufferDiffers: {Type: "FileModified",
		Says:   "{at} has unsaved text in the user's editor, and the file on the disk has changed too since this session last read it",
		Hint:   "Read it{by}, which shows the editor's text, then repeat the call; or ask the user to save or reload it in the editor.",
		Person: "Save or reload it in the editor."},
	engine.ClientFailed: {Type: "UnsavedText", Retry: true,
		Says:   "{fact?}the user's editor did not answer for {at}: {fact} | the user's editor did not answer for {at}",
		Hint:   "Call again; if it stays so, tell the user.",
		Person: "Call again."},

	engine.Unread: {Type: "ReadRequired",
		Says:   "this session has not read the file, and must before it changes it",
		Hint:   "Read it{by}, then repeat the call.",
		Person: "Read it first, with the same --session."},
	engine.PartUnread: {Type: "ReadRequired",
		Says: "{derived?}this session has seen what can be shown of this file, but that was made from it, and there is more in it (packed text, layout, or perhaps pictures, formulas, macros or deleted text), which a full overwrite would drop | " +
			"{nothing?}nothing of what is in this file could be shown to this session; a full overwrite would drop it unseen | {Unit=source line}this session has seen the text of this file, but not its source, which a full overwrite would drop | " +
			"this session has read {seen}; a full overwrite would drop what it has not seen",
		Hint: "{derived?}Send {acknowledge}: true if all of it should be replaced; to keep the rest, make the change with a program for such files. | {nothing?}" + replaceAll + " | " +
			"{Unit=source line}Read the source first, or send {acknowledge}: true to replace all of it. | " +
			"{Unit=cell}Use {NotebookEdit} to change cells, read the rest (of a cell that is cut: the source, with {encoding}: utf-8), or send {acknowledge}: true to replace all of it. | " +
			"Read the rest first, use {Edit} to change only what was seen, or send {acknowledge}: true to replace all of it. | " + readRest},
	engine.LinesUnseen: {Type: "ReadRequired",
		Says: "this session has not seen lines {First} to {Last} of {path}, and old_string is merely like what stands there" + untouched,
		Hint: "Read them, then repeat the call with their exact text."},
	engine.DropsUnseen: {Type: "ReadRequired",
		Says: "this would drop more than half of a file of which only a part was read" + unchanged,
		Hint: "{derived?}Set {acknowledge}: true if that is meant. | {nothing?}Set {acknowledge}: true if that is meant. | Read the rest first, or set {acknowledge}: true if that is meant. | " + readRest},
	engine.NotAsShown: {Type: "NotText",
		Says:   "{path} is a file of kind {fact}: what is shown is converted from its bytes, and an edit of text would damage them" + untouched,
		Hint:   "Make the change with a program for such files, or ask the user how.",
		Person: "Make the change with a program for such files."},
	engine.WriteTooLarge: {Type: "WriteTooLarge",
		Says:   "{path} would have {Size} bytes, and a file may have at most {Max}" + unchanged,
		Hint:   "Write less, or split it over several files; the operator can raise the limit (max_write_bytes).",
		Person: "Write less, or raise max_write_bytes."},
	engine.OverBinary: {Type: "NotText",
		Says:   "{path} is a file of kind {fact}; the content to write is plain text and would replace the whole file" + unchanged,
		Hint:   "Write to another path to keep the file, or send {acknowledge}: true if all of it should be replaced. | Write to another path, or ask the user.",
		Person: `Write to another path to keep the file, or say "{acknowledge}": true if all of it should be replaced. | Write to another path.`},
	engine.Accident: {Type: "InvalidArgument",
		Says: "{Guard=empties}this would empty a file that has content" + unchanged + " | {Edits?}\"{Text}\" in line {Line} of the result stands for {Removed lines} of code that it would delete" + unchanged +
			" | \"{Text}\" in line {Line} of the content stands for {Removed lines} of code that it would delete" + unchanged,
		Hint: whole},
	engine.Modified: {Type: "FileModified",
		Says: "the file changed since this session read it; nothing was changed by this call",
		Hint: "Read it again{by}, then repeat the change on what is there now."},
	engine.Unexpected: {Type: "FileModified",
		Says: "{Hash?}the file is not the content that was expected" + unchanged + " | the file does not exist, so it is not the content that was expected" + unchanged,
		Hint: "{Hash?}Read it again{by}, then repeat the change on what is there now. | Leave {expected_hash} out to create it, or check the path with {Glob}. | Check the path."},
	engine.ReadOnly: {Type: "PermissionDenied", Errno: syscall.EACCES,
		Says:   "{path} is read-only ({fact})" + unchanged,
		Hint:   `Ask the user to make it writable{skip}.`,
		Person: `Make it writable{skip}.`},

	engine.NoMatch: {Type: "InvalidArgument", Says: "old_string was not found{because}" + untouched,
		Hint: "{offer=nothing}Nothing is left to do, unless another place is meant: then send more of the text around that. | " +
			"{in?}The text is in {offer}, which was read here: send next if that file is meant. | {offer=next}Send next: both strings are repaired. | " +
			"{offer=readings}Two things can be meant: send the one of readings that is. | " +
			"{offer=alike}If the region is what is meant, send resend as {old_string}, with new_string made to fit it. | " +
			"{offer=resend}Repair both strings: {old_string} becomes resend, and {repair}. | {offer=region}If the region is what is meant, copy {old_string} from it. | " +
			"{offer=read}Copy {old_string} from the file as it was read here. | {offer=lines}Read lines {Line} to {EndLine} and copy {old_string} from there. | " +
			"Read the file{by} and copy {old_string} from it."},
	ShownDecoded: {Type: "NotText",
		Says: "{fact=notebook}old_string is not in the file: of a notebook Read shows the cells, which are written in another way in the file" + untouched +
			" | {fact=terminal codes}old_string is not in the file: Read shows it without the codes for terminals that stand between its letters" + untouched + " | old_string is not in the file: of an email whose text is encoded Read shows the decoded text, which is not the file's bytes" + untouched,
		Hint: "{fact=notebook}Use {NotebookEdit}, or read the source with {encoding}: utf-8 and take {old_string} from there. | {fact=terminal codes}Read it with ansi: true and take {old_string} from there. | Read the source with render: false and take {old_string} from there. | Take the text from the source."},
	ReplacedBytes: {Type: "EncodingError",
		Says: "old_string has U+FFFD, which Read shows in place of bytes that are no text in that encoding: it is not in the file" + untouched,
		Hint: "{fact?}Take an {old_string} without U+FFFD from beside those bytes, or read and edit with the encoding that the file is really in. It was given here; left out, it is detected. | " +
			"Take an {old_string} without U+FFFD from beside those bytes, or read and edit with the encoding that the file is really in. | Take the text from beside those bytes."},
	CellUnseen: {Type: "ReadRequired", Says: "this session has not seen the source of cell {ID} (cell {Cell}), and must before it changes it",
		Hint: "Read it (a cell that is cut: by column, or the source with {encoding}: utf-8), then repeat the call. | Read it, then repeat the call."},
	SeveralDirectories: {Type: "InvalidPattern", Says: "the list speaks of several directories: {Outside} does not lie in {Root}",
		Hint: "Call {Glob} once for each directory. A comma within a name is written \"\\,\". | Make one call for each directory."},
	engine.NotUnique: {Type: "InvalidArgument", Says: "old_string matches {Count} places" + untouched,
		Hint: "{Strategy=exact}" + context + " | {Strategy=line_endings}" + context + " | {Strategy?}None is exactly {old_string}: send one of contexts as {old_string}, with new_string widened the same way and written as the file writes it. | " + context},
	engine.Unencodable: {Type: "EncodingError",
		Says:   "the new text holds {char}, which {why}" + untouched,
		Hint:   "{Refuted?}{convert?}Read it with the encoding that it may be in until no U+FFFD is shown, then send that {encoding} here too. Or set {encoding}: \"utf-8\" to convert the file. | {Refuted?}Read it with the encoding that it may be in until no U+FFFD is shown, then send that {encoding} here too. | {Rival=utf-8}Leave {encoding} out, and take {old_string} from a Read without it. | {Rival?}Read it with {encoding}: \"{Rival}\" too, and send the one whose letters are right as {encoding} here. | {convert?}Use a character that {Encoding} has, or set {encoding}: \"utf-8\" to convert the file. | {Guessed?}Use a character that {Encoding} has, or ask the user to convert the file to UTF-8; the encoding is a guess, the {encoding} argument overrules it. | Use a character that {Encoding} has, or ask the user to convert the file to UTF-8.",
		Person: "{Rival?}Name the encoding that the file is in. | Use a character that {Encoding} has, or convert the file to UTF-8."},
	engine.DamagedBytes: {Type: "EncodingError",
		Says:   "{fact}" + untouched + " | it holds bytes that are not {Encoding}" + untouched,
		Hint:   "Leave some text between them and the edit, or ask the user to repair that line; the {encoding} argument overrules what the file is taken for. | Ask the user to repair that line.",
		Person: "Repair that line, or leave some text between it and the edit."},
	engine.OldEmpty: {Type: "InvalidArgument", Says: "old_string is empty, which only creates a missing file or fills an empty one" + untouched,
		Hint: "Send the text to replace as {old_string}, or use {Write} to replace the whole file."},
	engine.OldIsNew: {Type: "InvalidArgument", Says: "old_string and new_string are the same" + untouched,
		Hint: "Leave the edit out, or send the text that should be there instead."},
	engine.NoChange: {Type: "InvalidArgument", Says: "line {Line} already reads like new_string" + untouched,
		Hint: "Leave the edit out, or send the text that should be there instead."},
	engine.BadEncoding: {Type: "EncodingError",
		Says: "{Is?}{fact}" + untouched + " | {known?}text in {Name} can be read, but not written or edited in place" + untouched + " | there is no encoding \"{Name}\"" + untouched,
		Hint: "{known?}{looks?}If it may be converted, {Read} it with {encoding}: \"{Name}\" and {Write} all of that text with {encoding}: \"utf-8\". If it only looks like that, send {encoding}: \"utf-8\". | " +
			"{known?}If it may be converted, {Read} it with {encoding}: \"{Name}\" and {Write} all of that text with {encoding}: \"utf-8\". | {Is?}Ask the user to convert it to UTF-8. If it only looks like that, send {encoding}: \"utf-8\". | Leave {encoding} out, or send a name such as utf-8, utf-16le, windows-1252, gb18030 or shift_jis.",
		Person: "{Is?}Convert it to UTF-8. | {known?}Convert it to UTF-8. | Use a name such as utf-8, utf-16le, windows-1252, gb18030 or shift_jis."},
	engine.TooManyEdits:   {Type: "InvalidArgument", Says: "{Count} {What}, more than {Max}" + untouched, Hint: fewer},
	engine.ResultTooLarge: {Type: "WriteTooLarge", Says: "the result would have {Size} bytes, more than {Max}" + untouched, Hint: fewer},
	engine.BadWindow:      {Type: "InvalidArgument", Says: "nothing of {path} begins at {fact}", Hint: "Lines are counted from 1, bytes from 0."},

	engine.NotApproved: {Type: "ApprovalDenied",
		Says:   "{fact?}the change was not approved ({fact})" + unchanged + " | the change was not approved" + unchanged,
		Hint:   "Ask the user what should be different before trying again.",
		Person: "-"},
	engine.NobodyToAsk: {Type: "ApprovalUnavailable",
		Says:   "the change needs approval, and nobody can be asked" + unchanged,
		Hint:   "{fact?}{fact} | Ask the operator for a way to approve: a terminal, --approve elicitation, --yes, or require_approval = false.",
		Person: "Run it in a terminal, or with --yes, or with --approve queue."},
	engine.RunsCode: {Type: "ApprovalUnavailable",
		Says:   "{Lifts?}{path} runs code later, or tells an agent what to do (class exec): a change of it takes an approval of its own, and nobody can be asked" + unchanged + " | {path} runs code later, or tells an agent what to do (class exec), which the operator has closed to changes" + unchanged,
		Hint:   "{Lifts?}Tell the user; the operator can be asked with --approve terminal or queue, can say yes-exec in place of yes, or lift that: {lift}. | Go on without it, or tell the user; the operator can lift that: {lift}.",
		Person: `Run it in a terminal, or with --approve yes-exec or queue; {lift} lifts it, protect_exec = "allow" for all.`},
	engine.NotAnswered: {Type: "ApprovalTimeout", Retry: true,
		Says:   "nobody answered the approval question in time" + unchanged,
		Hint:   "Tell the user that an approval is wanted, then call again.",
		Person: "Call again, or give more time with approval_timeout."},
	engine.ApprovalStale: {Type: "ApprovalStale", Retry: true,
		Says: "{path} changed while the approval was pending" + unchanged,
		Hint: "Call again: the new diff will be put before the approver."},
	engine.TierBlocked: {Type: "CapabilityBlocked",
		Says: "this caller may not make this call; nothing was done", Hint: "Tell the user, or do it another way.", Person: "-"},
	engine.HookBlocked: {Type: "BlockedByHook", Says: "{fact}",
		Hint: "Do what the reason asks for, or tell the user; the same call is blocked again.", Person: "Do what the reason asks for."},
	engine.ChainFailed: {Type: "PolicyUnavailable",
		Says:   "the operator's policies could not decide about {path}, so the call is refused",
		Hint:   "Tell the user; the audit log has the details, and moltis-fs policy explain the rule.",
		Person: "The audit log has the details, and moltis-fs policy explain the rule."},
	engine.HookFailed: {Type: "PolicyUnavailable",
		Says: "the hook {Hook} could not answer, so the call is refused", Hint: "Tell the user; the operator's log has the details.", Person: "The log has the details."},
	engine.Withheld: {Type: "AnswerWithheld",
		Says:   "{fact?}the call has ended, and its answer is withheld: {fact} | the call has ended, and its answer is withheld",
		Hint:   "What the call changed is changed: do not send it again. Tell the user.",
		Person: "What the call changed is changed: do not make it again."},

	engine.Conflicts: {Type: "Conflict DestinationExists", Errno: syscall.EEXIST,
		Says: "{restore?}{one} can't be restored without losing other changes" + unchanged + " | {restore?}{count} paths can't be restored without losing other changes" + unchanged + " | something is at {first} already" + unchanged + " | something is there already" + unchanged,
		Hint: "{trash?}Something is there now; move it away first, or leave the entry in the trash. | {stays?}Neither merge nor force removes what is in the way: choose {on_conflict} skip, which leaves those paths alone, or move it away first. | " +
			"{merging?}Merging does not work here: choose {on_conflict} skip, which leaves those paths alone, or force, which overwrites (undoable). | " +
			"{restore?}Choose {on_conflict}: merge keeps both, force overwrites (undoable), skip leaves those paths alone.{editor} | Use another name, or move away what is there."},
	engine.RunLeaves: {Type: "PermissionDenied", Errno: syscall.EACCES,
		Says:   "{one?}the program changed {one}, which can't be changed here" + unchanged + " | the program changed {count} paths that can't be changed here" + unchanged,
		Hint:   "Send it again with partial: true to make the other changes, or have it leave those paths alone.",
		Person: "Take --partial, which leaves those paths as they are and makes the other changes."},
	engine.RunStale: {Type: "Conflict", Errno: syscall.EBUSY, Retry: true,
		Says:   "others changed paths meanwhile that the program changed too" + unchanged,
		Hint:   "Run it again: then it begins with what is there now.",
		Person: "Run it again, or take --partial, which leaves those paths as they are and makes the other changes."},
	engine.NotStored: {Type: "NotRecoverable",
		Says:   "{Name=only_alone}{at} is not restored with others: {fact}" + unchanged + " | {restore?}the content of {at} is not in the checkpoint ({fact})" + unchanged + " | {fact?}{at} cannot be kept, or is kept no more: {fact}" + unchanged + " | {path} cannot be kept, or is kept no more" + unchanged,
		Hint:   "{Name=only_alone}Restore the checkpoint by its id with this path alone in {paths}, then with the others. | {trash?}Ask the user for a backup. | {restore?}Ask the user for a backup, or name other paths of it, if there are any, in {paths}. | Ask the user.",
		Person: "{Name=only_alone}Restore the checkpoint by its id with this path alone in {paths}, then with the others. | {trash?}Take it from a backup. | {restore?}Take it from a backup, or name other paths of it, if there are any, in {paths}."},
	engine.WouldLose: {Type: "NotRecoverable",
		Says: "what is at {at} now is too large for the checkpoint store or excluded from it, so that overwriting it would lose it" + unchanged,
		Hint: "Move it away or delete it into the trash first{skip}."},
	engine.NoTrash: {Type: "NotRecoverable",
		Says:   "{fact?}{at} can't be moved to the trash: {fact}" + unchanged + " | {at} can't be moved to the trash" + unchanged,
		Hint:   "{restore?}Ask the user to remove it, or name other paths of it, if there are any, in {paths}. | Ask the user to remove it.",
		Person: "{restore?}Remove it, or name other paths of it, if there are any, in {paths}. | Remove it."},
	engine.NotInPlan: {Type: "InvalidArgument", Says: "it holds no change of {at}" + unchanged,
		Hint: "{Held?}It holds {fact}; name those, or a directory above them, in {paths}. | Nothing was changed there since then, so leave {paths} out or choose an earlier point."},
	engine.TooManyPaths: {Type: "TooManyEntries",
		Says:   "{Dirs?}the system lets this process have so few files open that about {Most} directories with their files can be changed at once" + unchanged + " | {restore?}the system lets this process have so few files open that about {Most} paths can be changed at once" + unchanged + " | one call changes at most {Most} paths" + unchanged,
		Hint:   parts + "ask the operator for more open files (ulimit -Hn). | " + fewPaths + "ask the operator for more open files (ulimit -Hn). | Change less at once.",
		Person: parts + "allow more open files (ulimit -Hn). | " + fewPaths + "allow more open files (ulimit -Hn). | Change less at once."},
	engine.TooManyEntries: {Type: "TooManyEntries", Says: "there are more than {fact} entries in {at}", Hint: "Name a directory that holds less."},
	engine.IntoItself:     {Type: "InvalidArgument", Errno: syscall.EINVAL, Says: "source and destination are the same, or one lies in the other", Hint: "Name another place."},

	engine.BadGlob: {Type: "InvalidPattern", Says: "bad glob \"{Glob}\": {Why}",
		Hint: "{Climbs?}Give the directory to look in as path. | Write it like **/*.go or *.{ts,tsx}; a backslash makes the next character literal."},
	engine.BadPattern: {Type: "InvalidPattern", Says: "the pattern can't be used: {Why} (at byte {Offset})",
		Hint: "{Multiline?}{Suggest?}Set {multiline}, and use `{Suggest}`. | {Multiline?}Set {multiline}. | Mend it there, or search for a part of it that stands in the text as it is."},
	engine.NoFileType: {Type: "InvalidArgument", Says: "there is no file type \"{Type}\"",
		Hint: "{Nearest?}Use {Nearest}, or {glob}. | The types are those of rg --type-list, such as py, ts and rust; for others use {glob}, like *.ext."},
	engine.Unwatchable:    {Type: "WatchUnsupported", Says: "changes cannot be watched at {path}", Hint: "List it again instead."},
	engine.TooManyWatches: {Type: "TooManyWatches", Says: "the system lets us watch no more: {fact}", Hint: "Watch fewer directories, or end another watch."},

	engine.BadID:          {Type: "InvalidArgument NotInTrash", Says: "{fact}", Hint: "Take an id from {checkpoints_list}, as it stands there."},
	engine.BadRestore:     {Type: "InvalidArgument", Says: "{fact}", Hint: "Send the id of a checkpoint from {checkpoints_list}."},
	engine.AmbiguousLabel: {Type: "InvalidArgument", Says: "{Carry checkpoints} carry the label \"{Label}\"; nothing was chosen", Hint: "Say which one is meant: send its time as {since}, in the place of {label}."},
	engine.AmbiguousTurn:  {Type: "InvalidArgument", Says: "{Begun turns} have the name \"{Turn}\"; nothing was chosen", Hint: "Say which one is meant: send its time as {since}, in the place of turn."},
	engine.PartialHistory: {Type: "NotRecoverable",
		Says: "{undo?}retention took what this session changed up to {until}, and some of that is newer or of the same run, so that this undo would not restore what was there" + unchanged + " | retention took what this session changed up to {until}, so that going back that far would not restore what was there" + unchanged,
		Hint: "{undo?}{on_conflict} force takes back what is left (undoable). | {restore?}Choose a point after that. Or {on_conflict} force goes, for each path, as far back as the store can (undoable). | Choose a point after that."},
	engine.NoCheckpoint: {Type: "NotInTrash",
		Says:   "{trash?}there is no such entry in the trash | {named?}this session has no {named}{off} | there is no such checkpoint{off}",
		Hint:   "{trash?}It may be back already, or its time was over. | " + operators + "{named?}{checkpoints_list} shows the turns and labels of its checkpoints. | Take an id from {checkpoints_list}.",
		Person: "{trash?}It may be back already, or its time was over; --principal says whose trash it is. | {named?}{checkpoints_list} shows the turns and labels of its checkpoints; --session and --principal say whose history is meant. | " + anId},
	engine.NothingToUndo: {Type: "NotInTrash",
		Says:   "{until?}there is nothing to undo or redo in this session any more: what it changed up to {until} is not in the store, because retention took it{off} | there is nothing to undo or redo in this session{off}",
		Hint:   operators + "Look at the history with {checkpoints_list}.",
		Person: "Look at the history with {checkpoints_list}; --session and --principal say whose history is meant."},
	engine.NotSaved: {Type: "StoreUnavailable",
		Says:   "{fact?}the checkpoint could not be stored, so nothing was changed: {fact} | the checkpoint could not be stored, so nothing was changed",
		Hint:   "Tell the operator; changes wait until checkpoints can be stored again.",
		Person: "moltis-fs store check says what is wrong with the store."},
	engine.StoreFull: {Type: "StoreUnavailable", Says: "the checkpoint store is full: {Bytes} bytes of {Max}" + unchanged,
		Hint: "Change less at once, or ask the operator to " + unpin, Person: "Change less at once, or " + unpin + " moltis-fs store stats says what the store takes."},
	engine.StoreDiskFull: {Type: "StoreUnavailable", Errno: syscall.ENOSPC, Says: "the disk of the checkpoint store is full" + unchanged,
		Hint:   "Ask the user to free space on that disk, by moltis-fs trash empty, or by lower numbers for keep_within, keep_last or max_bytes in [tools.fs.checkpoint] and then moltis-fs store gc --config FILE; then call again.",
		Person: "Free space on that disk, by moltis-fs trash empty, or by lower numbers for keep_within, keep_last or max_bytes in [tools.fs.checkpoint] and then moltis-fs store gc --config FILE; then call again."},
	engine.StoreGone: {Type: "StoreUnavailable", Says: "{fact}" + unchanged + " | the checkpoint store is gone" + unchanged,
		Hint:   "Ask the operator to put the store back where it was or, if it is gone for good, to restart the server.",
		Person: "Put the store back where it was, or start anew without it."},
	engine.StoreBusy: {Type: "StoreUnavailable", Retry: true, After: 1, Says: "another process has been using the checkpoint store for too long" + unchanged,
		Hint:   "Call again in a moment. If it stays so, ask the user to look for a process of moltis-fs that stands still on this data directory, and to let it go on or end it.",
		Person: "Call again in a moment; if it stays so, look for a process of moltis-fs that stands still on this data directory."},
	engine.StoreReadOnly: {Type: "StoreUnavailable", Says: "the checkpoint store is on a read-only file system" + unchanged,
		Hint:   "Ask the operator for a data directory (--data-dir) that can be written to; what is stored can be looked at meanwhile.",
		Person: "Name a data directory that can be written to, with --data-dir."},
	engine.StoreInUse: {Type: "StoreUnavailable", Retry: true, Says: "the checkpoint store is in use" + unchanged,
		Hint:   "Wait until the operator's repair of the store has ended, then call again.",
		Person: "Wait until the repair of the store has ended."},
	engine.Sealed: {Type: "StoreUnavailable", Says: "the content is encrypted to a key that is not here",
		Hint: "Ask the operator, who can read it with the identity file (--identity).", Person: "Name the identity file with --identity."},
	engine.CorruptContent: {Type: "NotRecoverable", Says: "the stored copy is damaged and was not used: {Why}",
		Hint:   "Restore another checkpoint, and tell the operator to run moltis-fs store check.",
		Person: "Restore another checkpoint; moltis-fs store check says what else is damaged."},

	engine.Absent: {Type: "FileNotFound DirectoryNotFound", Errno: syscall.ENOENT, Says: "{path} does not exist", Hint: "Check the path with {Glob}. | Check the path."},
	engine.NotPermitted: {Type: "PermissionDenied", Errno: syscall.EACCES, Says: "the system does not let us: {path} is not accessible to this process",
		Hint: "Ask the user to change its permissions, or use another file{skip}.", Person: "Change its permissions, or those of its directory{skip}."},
	engine.NotADirectory: {Type: "NotADirectory", Errno: syscall.ENOTDIR,
		Says: "{restore?}something that is no directory is on the way to {path}" + unchanged + " | {path}, or a part of it, is a file, not a directory",
		Hint: "{restore?}Move it away first{skip}. | Check the path with {Glob}. | Check the path."},
	engine.LinkLoop:    {Type: "FileNotFound DirectoryNotFound", Errno: syscall.ELOOP, Says: "{path} is a loop of symbolic links", Hint: "Use the real path of the file."},
	engine.NameTooLong: {Type: "InvalidArgument", Errno: syscall.ENAMETOOLONG, Says: "the path, or a name in it, is too long", Hint: "Use a shorter path."},
	engine.DiskFull: {Type: "DiskFull", Errno: syscall.ENOSPC, Says: "the disk is full" + unchanged,
		Hint: "Ask the user to free space, then call again.", Person: "Free space, then call again."},
	engine.DiskReadOnly: {Type: "PermissionDenied", Errno: syscall.EROFS, Says: "the file system of {path} is read-only" + unchanged, Hint: "Use another directory{skip}."},
	engine.Fixed: {Type: "PermissionDenied", Errno: syscall.EACCES,
		Says: "{Unkept?}{path} can only be written in place, and what is there, or what comes, can't be kept for that: it is too large for the checkpoint store or excluded from it" + unchanged +
			" | {Sticky?}{path} can't be replaced, moved or removed: it is somebody else's, and its directory is sticky" + unchanged +
			" | {closed?}{path} can't be made, replaced, moved or removed: the directory {Dir} is not writable for this process" + unchanged +
			" | {closed?}{path} can't be made, replaced, moved or removed: its directory is not writable for this process" + unchanged +
			" | {path} is a mount point, which can't be replaced, moved or removed" + unchanged,
		Hint:   "{closed?}Ask the user to change the permissions of that directory, or use another one{skip}. | Tell the user, or use another path{skip}.",
		Person: "{closed?}Change the permissions of that directory, or use another one{skip}. | Unmount it first, or use another path{skip}."},
	engine.Busy: {Type: "PermissionDenied", Errno: syscall.EBUSY, Says: "the system holds {path}: it is a mount point, or in use by the system" + unchanged,
		Hint: "Tell the user, or use another path{skip}.", Person: "Unmount it first, or use another path{skip}."},
	engine.SystemError: {Type: "IOError", Says: "the system said: {fact} | the system failed", Hint: "Try once more; if it stays, tell the user.", Person: "Try once more."},
	engine.NoAnswer: {Type: "NoAnswer", Says: "the file system does not answer; {fact}",
		Hint:   "{Began?}Tell the user. Read the file{by} when it answers again. | Tell the user that it hangs, and use another path.",
		Person: "{Began?}Read the file when it answers again. | Use another path."},
	engine.Unavailable: {Type: "SandboxUnavailable", Retry: true, After: 1, Says: "the sandbox where this call has to run can't be reached",
		Hint: "Call again: it is started anew. If that fails too, tell the user; the operator's log says why.", Person: "moltis-fs doctor says what is wrong with it."},
	engine.TookTooLong: {Type: "Timeout", Retry: true, Says: "the call took too long and was stopped",
		Hint: "{changes?}Look at the file, then send the change in smaller parts. | Ask for less: a narrower path, pattern or window."},
	engine.Cancelled: {Type: "Cancelled", Retry: true, Says: "the call was cancelled", Hint: "Call again if the answer is still wanted."},
	engine.Unknown: {Type: "IOError", Says: "the system failed in a way that has no name here",
		Hint: "Tell the user; the operator's log has the details.", Person: "The log has the details."},

	NotShown:    {Type: "NotText", Says: "{fact} | {path} can't be shown", Hint: "{hint}"},
	NotNotebook: {Type: "NotText", Says: "{fact}" + untouched, Hint: "Use {Edit} on the file's text as {Read} shows it; where it shows cells, the text comes with {encoding}: utf-8."},
	NoSuchCell: {Type: "InvalidArgument", Says: "{fact}" + untouched,
		Hint:   "{Count?}Ask the user to repair the notebook, or use {Edit} on the file's text ({Read} shows it with {encoding}: utf-8). | Take a {cell_id} from {Read}.",
		Person: "{Count?}Repair the notebook, or use {Edit} on the file's text. | Take a {cell_id} from {Read}."},
	NoEncoding:   {Type: "EncodingError", Says: "there is no encoding \"{Name}\"; near it are {Near}", Hint: "Use one of those."},
	Undecodable:  {Type: "EncodingError", Says: "{path} cannot be decoded as {Name}", Hint: "Name another encoding."},
	CountDiffers: {Type: "CountMismatch", Says: "there would be {Total} replacements instead of {Expected}" + unchanged, Hint: "Look at what is found, then send its number."},
	NotText:      {Type: "NotText", Says: "{path} is not text", Hint: "Use a program for such files."},
	NotUTF8:      {Type: "EncodingError", Says: "{path} is not UTF-8: {fact}", Hint: "Read its bytes."},
	NoDirectory:  {Type: "NotADirectory", Says: "{path} is not a directory", Hint: "Name a directory, such as the one that it is in."},
}

// whys are the words for each reason; %v is its fact.
var whys = map[string]string{
	engine.ChangedOutside.Name:  "changed outside",
	engine.ChangedByOthers.Name: "changed by others in between",
	engine.LastPurged.Name:      "what it became last was purged, so that nobody can tell whether it was changed outside",
	engine.LastRemoved.Name:     "what it became last is not in the store any more (retention), so that nobody can tell whether it was changed outside",
	engine.SameLines.Name:       "later changes touch the same lines",
	engine.Occupied.Name:        "something is there",
	engine.NotSavable.Name:      "what is there now is too large for the store or excluded from it, and would be lost",
	engine.IsReadOnly.Name:      "it is read-only (%v)",
	engine.VolumeReadOnly.Name:  "its file system is read-only",
	engine.DirNotWritable.Name:  "the system does not let us change its directory",
	engine.Unreadable.Name:      "the system does not let us read it",
	engine.Unreachable.Name:     "the system does not let us into a directory on the way to it",
	engine.OutOfReach.Name:      "the policy closes it to this session (allow_paths, deny_paths, or a rule on something in it)",
	engine.FileOnTheWay.Name:    "something that is no directory is on the way to it",
	engine.LinkOnTheWay.Name:    "a directory on the way to it has become a symbolic link",
	engine.OtherKind.Name:       "a %v is there now",
	engine.KindForDir.Name:      "a %v is in the place of the directory",
	engine.WasDirOf.Name:        "at another time it was the directory of %v",
	engine.HeldOpen.Name:        "another program has it open for writing, and what it writes from now on would be lost; close it there and try again, or take force",
	engine.MaybeHeldOpen.Name:   "the system does not tell whether another program has it open for writing, whose lines would be lost then; make sure that none has, and take force",
	engine.OnlyAlone.Name:       "it was appended to in place, which is made again for one file at a time",
	engine.NotInTrash.Name:      "it is not in the trash any more",
	engine.NoneInTrash.Name:     "it is not in the trash any more, and something else is in its place",
	engine.TrashUnopened.Name:   "what was parked can't be reached: %v",
	engine.ContentOf.Name:       "its content was not stored: %v",
	engine.Unstored.Name:        "%v",
	engine.JustRemoved.Name:     "removed to make room, or purged, just now",
	engine.InUse.Name:           "something is in it",
	engine.Unlisted.Name:        "the system does not let us look into it",
	engine.NotListed.Name:       "it could not be looked into: %v",
	engine.NotRemoved.Name:      "it could not be removed: %v",
	engine.SetID.Name:           "it has a set-id bit or a capability, which is not given to files here",
	engine.SpecialFile.Name:     "it is a FIFO, a socket or a device",
	engine.NoSuchName.Name:      "its path is not UTF-8, or is longer than 4,095 bytes",
	engine.LayeredDir.Name:      "it is a directory on an overlay file system, which can't give way to a file in one change",
	engine.ClosedClass.Name:     "it is closed: names like this are of the class %v",
	engine.ShutDir.Name:         "it is a directory of mode %v, which its owner can't look into, so that nobody could take it back",
	engine.NotDone.Name:         "%v",
	engine.LinkNow.Name:         "a link leads elsewhere now",
	engine.TooLargeNow.Name:     "it is too large now",
	engine.NotLookedAt.Name:     "it can't be looked at: %v",
	engine.NotRead.Name:         "it can't be read: %v",
	engine.WentTo.Name:          "it was moved to %v",
	engine.CameFrom.Name:        "it was moved here from %v",
	engine.AfterUnknown.Name:    "what it became is not in the store",
	engine.KindNow.Name:         "it is a %v now",
}

// meanwhiles are the words for acts of others at the same moment.
var meanwhiles = map[guardfs.Interference]string{
	guardfs.Appeared:          "something appeared there",
	guardfs.WasRemoved:        "it was removed",
	guardfs.Replaced:          "it was replaced by another file",
	guardfs.ContentChanged:    "its content was changed",
	guardfs.ModeChanged:       "its mode was changed",
	guardfs.OwnerChanged:      "its owner was changed",
	guardfs.AttributesChanged: "its attributes were changed",
	guardfs.ChangedAgain:      "it was changed again at once",
	guardfs.LeadsElsewhere:    "it now leads elsewhere",
	guardfs.NameAdded:         "it got another name, a hard link",
	guardfs.WasLink:           "it was a link when it was looked at",
	guardfs.LinkInTurns:       "it is a link and no link in turns",
	guardfs.LinkInTheWay:      "a link was put in its way, which leads to ",
	guardfs.OpenedInTurns:     "it was replaced again and again while it was being opened",
	guardfs.DirRemoved:        "its directory was removed",
	guardfs.DirMoved:          "its directory was moved",
	guardfs.DirRefused:        "its directory was moved to a place that is refused",
	guardfs.DirNameless:       "its directory has no name any more",
	guardfs.DirInTurns:        "its directory is being made and removed in turns",
	guardfs.TempSwapped:       "its temporary file was changed, or swapped for another",
	guardfs.TempRemoved:       "its temporary file was removed",
	guardfs.PublishedToo:      "somebody else published at the same moment",
	guardfs.PublishedOrSwap:   "somebody else published at the same moment, or its temporary file was swapped for another",
	guardfs.NotRemoved:        "it could not be removed",
	guardfs.BeingTakenBack:    "another change of it was interrupted and is being taken back; try again",
}

// noMatches are the words for each cause of an old_string that was not found, and for the repair of new_string with it.
var noMatches = map[string]struct{ because, repair string }{
	edit.CauseTabsVsSpaces:   {" (the file indents with other tabs and spaces)", "the lines of new_string are indented like it"},
	edit.CauseIndentation:    {" (the file indents it to another depth)", "the lines of new_string are indented like it"},
	edit.CauseWhitespace:     {" (blanks inside lines, or blank lines, differ)", "new_string gets the same blanks and blank lines"},
	edit.CauseTrailingBlanks: {" (blanks at line ends differ)", "new_string keeps its blanks at line ends"},
	edit.CauseLineEndings:    {" (line endings differ)", ""},
	edit.CauseQuotes:         {" (quotes or dashes are typographic in one of them)", "new_string is written with the file's quotes and dashes"},
	edit.CauseUnicodeSpace:   {" (a space is another Unicode space)", "new_string is written with the file's spaces"},
	edit.CauseNormalisation:  {" (accents are composed in one and decomposed in the other)", "accents in new_string are composed or decomposed as in it"},
	edit.CauseEscaped:        {" (escapes such as \\n stand for themselves)", "backslashes in new_string stand where they stand in the file"},
	edit.CauseEntity:         {" (HTML entities stand for themselves)", "<, > and & in new_string are written as in the file"},
	edit.CauseLineNumbers:    {" (it carries line numbers of a Read)", "new_string loses its line numbers, with the blanks around them"},
	edit.CauseCase:           {" (upper and lower case differ)", "names in new_string are spelled as in the file"},
	edit.CauseApplied:        {", and new_string stands there already", ""},
	edit.CauseStale:          {" (the text was there when the file was read, and is no longer)", ""},
}
