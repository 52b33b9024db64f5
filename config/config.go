// Package config is what the operator wrote: the sections [tools.fs], [tools.fs.checkpoint],
// [tools.fs.fleet], [tools.fs.audit], [tools.fs.hooks], [tools.acp],
// [tools.run], [tools.js], [tools.capability], [tools.sandbox] and [tools.policy] of one TOML file, as Go values.
//
// Decode is strict. An unknown key or section, a wrong type, a word that is not allowed, a glob
// that cannot be read: each is a Problem with file, line, column and what to write instead. All
// problems come at once, in file order. Nothing is ignored and nothing falls back to a default:
// with one problem there is no Config. Check finds the same in a Config that was made in Go.
//
// Warnings gives what Check accepts and may still be a mistake, such as the name of an unknown
// tool. Locate adds to a Problem where in the file it stands.
//
// Default is the only source of defaults. The doc tags are the only source of the sentences in
// Example and Table.
//
// The package opens no file and reads no environment: the caller knows where the bytes come from.
// Config is a plain value; everything here is safe for concurrent use.
//
//	cfg, err := config.Decode(data, "moltis.toml")
//	if err != nil {
//		return err // one line per problem, such as
//		// moltis.toml:7:1: tools.fs.track_read: unknown key; did you mean "track_reads"?
//	}
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Config is one file.
type Config struct {
	Tools Tools `toml:"tools"`

	foreign []string // sections of Moltis that were passed by
}

// Hash is the SHA-256 of all that c says, in hex, and of what else is said beside it: two are the
// same when they mean the same.
func (c Config) Hash(beside ...string) string {
	all, _ := json.Marshal([]any{c, beside}) // strings, numbers and lists of them: it can't fail
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:])
}

// Lines are the programs, and the webhooks, with the words behind them.
func (h *Hooks) Lines() []string {
	return slices.Concat(h.BeforeToolCall, h.AfterToolCall, h.ToolResultPersist, h.OnQuestion, h.Webhooks)
}

// DenyAt says where entry i of DenyPaths stands, as "/etc/moltis.toml:12"; "" where that is not known.
func (f *FS) DenyAt(i int) string {
	if i < 0 || i >= len(f.denyAt) {
		return ""
	}
	return f.denyAt[i]
}

// DenyIn has DenyAt name the file as name, such as its absolute path.
func (f *FS) DenyIn(name string) {
	for i, at := range f.denyAt {
		f.denyAt[i] = name + at[strings.LastIndexByte(at, ':'):]
	}
}

// Tools is the section [tools]. It holds sections only.
type Tools struct {
	FS         FS         `toml:"fs" doc:"The filesystem tools. Every key is optional."`
	Jettson    Jettson    `toml:"jettson" doc:"The four tools of Jettson Files, which see nothing but a workspace."`
	ACP        ACP        `toml:"acp" doc:"The file methods of the Agent Client Protocol, which moltis-fs acp guards."`
	Capability Capability `toml:"capability" doc:"How freely each capability of the dialect \"capability\" may be called, where that differs from what docs/capabilities.md says. A looser tier is taken with a warning at start."`
	Run        Run        `toml:"run" doc:"Programs, as moltis-fs run and the tool Bash start them (Linux): in an overlay over the workspace, so that all that a program changes there is one change, which is judged, asked about, stored and undone like an Edit. docs/run.md says more."`
	JS         JS         `toml:"js" doc:"Scripts, which the dialect \"jsfs\" runs by its tool run_js."`
	Sandbox    Sandbox    `toml:"sandbox" doc:"Calls that run inside of a container, a namespace or another machine, where this program is started as a worker. Policy, approvals, checkpoints and the audit log stay here."`
	Policy     Policy     `toml:"policy" doc:"Which tools exist, by name: exact, \"prefix*\" or \"*\"; case matters. A denied tool is neither listed nor callable."`
}

// FS is [tools.fs]. Sizes are bytes. A list of paths holds absolute globs: * stays within a name,
// ** crosses directories, /x/** covers /x itself too.
//
// Tags: doc is the sentence for the operator, enum lists the allowed words, and sample is a value
// to show for a key without a default. min is the least number, 1 without it; with 0, that switches
// something off. check names the check of a text or of the entries of a list.
type FS struct {
	WorkspaceRoot       string   `toml:"workspace_root" check:"root" sample:"/home/user/projects/my-app" doc:"Where Glob and Grep search when no path is given; hints for relative paths refer to it, too. It is absolute and must exist. It confines nothing: allow_paths does."`
	AllowPaths          []string `toml:"allow_paths" check:"globs" doc:"Absolute globs of the paths the tools may touch; ${ROOT} at their beginning is the root. They are compared with real paths, links followed. An empty list allows everything that is not denied. A directory above an allowed one can be searched, and shows only what is allowed."`
	DenyPaths           []string `toml:"deny_paths" check:"globs" doc:"Absolute globs of the paths no tool may touch or name; ${ROOT} as there. They hold for every way to reach the file: links, mounts, other letter case and other spellings; and by their own letters, so that [id] is also the name with the brackets. Deny wins over allow, and a denied directory is denied with all it holds."`
	ProtectSecret       string   `toml:"protect_secret" enum:"refuse|allow" doc:"Names that keep keys, passwords and tokens, such as .ssh, id_rsa, .env and .netrc: \"refuse\" neither shows nor changes them, whatever allow_paths says; \"allow\" treats them like others. docs/internals/decisions/0041-protected-classes.md has all of them."`
	ProtectExec         string   `toml:"protect_exec" enum:"ask|refuse|allow" doc:"Changing what runs code later or tells an agent what to do, such as .git, .bashrc, .mcp.json, CLAUDE.md and CI workflows: \"ask\" puts each change before somebody, with require_approval = false too; \"refuse\" takes none, \"allow\" sees nothing special in it."`
	Unprotected         []string `toml:"unprotected" check:"globs" doc:"Absolute globs of the paths for which protect_secret and protect_exec do not hold; ${ROOT} as in allow_paths. They are compared with real paths and cover what is below."`
	ReadOnly            bool     `toml:"read_only" doc:"Take away every tool that changes files, whatever [tools.policy] says."`
	ToolPrefix          string   `toml:"tool_prefix" check:"prefix" sample:"files_" doc:"What the names of the tools begin with, for clients that do not keep the tools of a server apart from their own: files_ makes files_Read of Read, in hints too. [tools.policy], hooks and the audit log have the names without it."`
	TrackReads          bool     `toml:"track_reads" doc:"Remember what each session has read, and warn of a Read repeated without a change."`
	MustReadBeforeWrite bool     `toml:"must_read_before_write" doc:"Refuse Write, Edit, MultiEdit and NotebookEdit of a file that the session has not read as it is now. In lines that were not shown, Edit still takes an exact old_string. Needs track_reads."`
	RequireApproval     bool     `toml:"require_approval" doc:"Ask the operator, with the diff, before each change."`
	ApprovalTimeout     Duration `toml:"approval_timeout" doc:"How long a question waits before the change is refused."`
	MaxReadBytes        int64    `toml:"max_read_bytes" doc:"Read refuses larger files whole; a window by offset and limit is still served."`
	MaxWriteBytes       int64    `toml:"max_write_bytes" sample:"10485760" doc:"The largest file that a change may leave, in bytes: of a write, an edit, an append or a copy, in every dialect. Restores and moves are not bound by it. Without it there is no limit but those of memory and disk."`
	BinaryPolicy        string   `toml:"binary_policy" enum:"reject|base64" doc:"What Read gives of a binary file: \"reject\" its size only, \"base64\" the bytes too."`
	LineNumbers         string   `toml:"line_numbers" enum:"auto|arrow|tab|compact" doc:"How Read sets line numbers off: \"arrow\" as Claude Code did, \"tab\" as it does now, \"compact\" with a colon; \"auto\" is tab for Claude Code, arrow for others."`

	ContextWindowTokens int `toml:"context_window_tokens" sample:"200000" doc:"The model's context window; one answer then takes at most about a fifth of it, between 5 KB and 512 KB, instead of 256 KB or what fits the client."`

	CreateParents bool `toml:"create_parents" doc:"Let Write and Edit make missing parent directories, whether or not the call asks for it."`

	EditMatching string `toml:"edit_matching" enum:"tolerant|strict" doc:"How Edit finds old_string: \"tolerant\" also where only blanks, quotes or indentation differ, \"strict\" exactly, line endings aside."`

	RespectGitignore bool     `toml:"respect_gitignore" doc:"Leave out of Glob and Grep what .gitignore, .ignore, .git/info/exclude and git's core.excludesFile name. An ignore file that is itself denied, or over 4 MB, does not count."`
	SearchDeadline   Duration `toml:"search_deadline" doc:"How long one Glob or Grep may take. What was found by then is answered, marked incomplete."`

	SearchDocuments bool `toml:"search_documents" doc:"Let Grep search the text of PDFs, office documents, mail, notebooks, compressed files and archives, as Read shows it. The texts are kept in the data directory for a day, at most 256 MB of them; not with encrypt_to."`

	Policies     []string `toml:"policies" check:"policies" doc:"Rego policies that are asked before each operation on a path, in every dialect: file:///FILE.rego, file:///DIRECTORY or the http(s) URL of an OPA server; behind a blank the rule, or at a server the path of the policy. docs/policy.md says more."`
	PoliciesMode string   `toml:"policies_mode" enum:"all|any" sample:"all" doc:"\"all\": each of policies has to allow; \"any\": one is enough. Set with no policies at all it allows everything."`

	CheckpointBeforeMutation bool `toml:"checkpoint_before_mutation" doc:"Store the old content before each change, for checkpoint_restore. Recommended; it costs disk space, and a change whose checkpoint can't be stored is refused."`

	Checkpoint Checkpoint `toml:"checkpoint" doc:"The store behind checkpoint_before_mutation."`
	Fleet      Fleet      `toml:"fleet" doc:"Gateways on several machines, which share one history and all that operators do. docs/fleet.md says more. Read at the start."`
	Audit      Audit      `toml:"audit" doc:"The record of every call, DATA-DIR/audit/audit.jsonl; docs/operations.md says what is in it."`
	Limits     Limits     `toml:"limits" doc:"What a caller that runs wild is kept to; 0 lifts a limit. The refusal names the limit."`
	Hooks      Hooks      `toml:"hooks" doc:"Programs that are asked about each call; internal/hook/hook.go says what they read and write."`
	HTTP       HTTP       `toml:"http" doc:"Whose access tokens moltis-fs serve takes beside its own; docs/http.md says more."`
	denyAt     []string   // where each entry of DenyPaths stands
}

// Audit is [tools.fs.audit].
type Audit struct {
	MaxBytes int64 `toml:"max_bytes" min:"0" doc:"What the record and its older files, audit.jsonl.1 to .4, take together: the oldest fifth makes room. 0: nothing is moved or removed; something else does it."`
}

// Memory is about how many bytes the program takes: the decoders of images, PDFs and documents share
// half of it, and a call that finds too little left waits. The variable GOMEMLIMIT bounds the rest.
const Memory = 2 << 30

// Limits is [tools.fs.limits].
type Limits struct {
	CallsPerSecond int `toml:"calls_per_second" min:"0" doc:"Calls of one session in a second. An idle session saves up ten seconds of them."`
	CallsAtOnce    int `toml:"calls_at_once" min:"0" doc:"Calls of one session that run, or wait for approval, at the same time."`
}

// HTTP is [tools.fs.http].
type HTTP struct {
	Issuer   string `toml:"issuer" check:"url" sample:"https://login.example.com" doc:"The URL of the issuer whose JWTs are taken. Its keys are fetched from there, by OpenID Connect Discovery. Needs audience."`
	Audience string `toml:"audience" check:"url" sample:"https://files.example.com/mcp" doc:"The URL of /mcp as clients know it. The JWTs have to name it as their audience."`
	Claim    string `toml:"claim" doc:"The claim that names the principal, which is that name behind \"jwt:\"."`
}

// Hooks is [tools.fs.hooks]. A program is an absolute path and its arguments, separated by blanks.
// There is no shell.
type Hooks struct {
	BeforeToolCall    []string `toml:"before_tool_call" check:"programs" doc:"Programs that see each call before it runs, and may change its arguments or block it. Each is an absolute path and its arguments. The call is JSON on standard input; exit 0 lets it go on, exit 1 blocks it with standard error as the reason."`
	AfterToolCall     []string `toml:"after_tool_call" check:"programs" doc:"Programs that see how each call ended."`
	ToolResultPersist []string `toml:"tool_result_persist" check:"programs" doc:"Programs that see each answer before it is given, and may change or withhold it."`
	OnQuestion        []string `toml:"on_question" check:"programs" doc:"Programs that hear of each change that waits for approval in the queue: JSON on standard input, without the diff."`
	Webhooks          []string `toml:"webhooks" check:"webhooks" doc:"The same by HTTP POST, signed as of standardwebhooks.com: each is an https:// URL and, behind a blank, the absolute path of a file with the secret."`
	Timeout           Duration `toml:"timeout" doc:"How long one hook may take."`
	OnError           string   `toml:"on_error" enum:"deny|allow" doc:"When a hook fails or is too slow: \"deny\" the call, or \"allow\" it as if the hook were not there."`
}

// Checkpoint is [tools.fs.checkpoint].
type Checkpoint struct {
	MaxFileBytes int64    `toml:"max_file_bytes" doc:"Larger files are changed without a checkpoint, and the result says so."`
	MaxBytes     int64    `toml:"max_bytes" min:"1048576" doc:"Maximum size of the store, its log included. The oldest unpinned checkpoints are deleted to stay below it."`
	KeepWithin   Duration `toml:"keep_within" min:"0" doc:"Checkpoints younger than this are kept while max_bytes allows."`
	KeepLast     int      `toml:"keep_last" min:"0" doc:"This many checkpoints of each file are kept while max_bytes allows, however old."`
	Exclude      []string `toml:"exclude" check:"globs of any depth" doc:"Globs of files whose content is never stored; a directory excludes everything below it. A glob without a slash holds at any depth. Links before the first wildcard are followed."`
	EncryptTo    string   `toml:"encrypt_to" check:"recipient" sample:"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p" doc:"Encrypt the store to this age recipient; restoring then needs its identity."`
}

// Fleet is [tools.fs.fleet].
type Fleet struct {
	Database string `toml:"database" check:"database" sample:"postgres://moltis@db.example.com/moltis?sslmode=verify-full" doc:"The PostgreSQL database of the fleet, without a password: that comes from passfile= in it, PGPASSWORD, ~/.pgpass or a certificate. All gateways of one database see the same trees by the same paths. Needs contents, and checkpoint_before_mutation."`
	Contents string `toml:"contents" check:"contents" sample:"s3://bucket/prefix?region=eu-central-1" doc:"The bucket of large contents, in S3 or, with endpoint=https://HOST, in what speaks like it. The keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the shared credentials file or the role of the machine. Needs database."`
	Durable  string `toml:"durable" enum:"remote|local" doc:"Where a checkpoint is durable before its change is made: \"remote\" in the database and the bucket, \"local\" on this machine, from which it is copied there in order; then a tree belongs to one gateway at a time."`
}

// On says that there is a fleet.
func (f Fleet) On() bool { return f.Database != "" }

// Jettson is [tools.jettson].
type Jettson struct {
	Workspaces string `toml:"workspaces" check:"root" sample:"/home/user/workspaces" doc:"A directory that has one workspace for each principal. Without it, all have workspace_root for theirs."`
	PerSession bool   `toml:"per_session" doc:"Give each session a workspace of its own. It is made with the first file, and goes to the trash when the session ends. Needs workspaces."`
}

// ACP is [tools.acp].
type ACP struct {
	MissingRead string `toml:"missing_read" enum:"error|empty" doc:"What fs/read_text_file answers where no file is: \"error\" as the protocol has it, \"empty\" no text, for agents such as gemini-cli that read before they make a file and give up at an error."`
}

// Run is [tools.run].
type Run struct {
	Enabled     bool     `toml:"enabled" doc:"Offer agents the tools Bash, BashOutput and KillShell. The command moltis-fs run is there without it."`
	Write       []string `toml:"write" check:"directories" doc:"Directories outside of the workspace that a program may write, as caches of compilers and package managers: absolute paths, each with all in it, with or without /** at the end. That is at once, without a question, a checkpoint or an undo; and what is put there may run later."`
	Network     bool     `toml:"network" doc:"Let a program use the network. Then it also reaches what listens on this machine, and what it does there happens before anybody is asked."`
	KeepIgnored bool     `toml:"keep_ignored" doc:"Store what git ignores, as node_modules, in the checkpoint too. Without it such files are changed and counted, and undo leaves them."`
	Timeout     Duration `toml:"timeout" min:"1000000000" doc:"The longest that one call of Bash may take; a call may ask for less (default: 2 minutes). Then the program is ended, and nothing that it changed is kept."`
	Disk        int64    `toml:"disk" min:"1048576" doc:"How many bytes one run may write, its temporary files included. Then the program is ended, and nothing that it changed is kept."`
}

// ShellTools are the tools that Run.Enabled offers.
var ShellTools = []string{"Bash", "BashOutput", "KillShell"}

// Lists are the lists of [tools.policy] for policy.NewTools: who may be called, and who may not. Where they say Bash, or exec, as Moltis
// calls its shell, they mean all of ShellTools, which are denied unless [tools.run] offers them.
func (t Tools) Lists() (allow, deny []string) {
	shells := func(list []string) []string {
		if slices.Contains(list, "exec") || slices.Contains(list, ShellTools[0]) {
			return slices.Concat(list, ShellTools)
		}
		return list
	}
	allow, deny = shells(t.Policy.Names()), shells(t.Policy.Deny)
	if !t.Run.Enabled {
		deny = slices.Concat(deny, ShellTools)
	}
	return allow, deny
}

// JS is [tools.js].
type JS struct {
	Filesystem bool     `toml:"filesystem" doc:"Give scripts an fs that [tools.fs] alone guards. Without it they have one only where there is a filesystem policy."`
	Time       Duration `toml:"time" doc:"The most that a script may run; a call may ask for less or more (default: 30 s). Waiting for approval does not count."`
	Memory     int64    `toml:"memory" min:"4194304" doc:"The most memory that a script may have; a call may ask for less or more (default: 64 MiB)."`
}

// Policy is [tools.policy].
type Policy struct {
	Profile string `toml:"profile" enum:"full|coding|minimal" sample:"full" doc:"The tools that exist where allow is empty, as Moltis has it: \"full\" all, \"coding\" exec, browser and memory, \"minimal\" exec, so that neither has one of ours."`

	Allow []string `toml:"allow" check:"tools" doc:"Names of the tools that exist; empty means all."`
	Deny  []string `toml:"deny" check:"tools" doc:"Names of the tools that do not exist; deny wins. Denying Edit denies NotebookEdit too, and denying all of Write, Edit and MultiEdit denies checkpoint_restore, unless allow has that very name."`
}

// Capability is [tools.capability].
type Capability struct {
	Autonomous       []string `toml:"autonomous" check:"capabilities" doc:"Names of capabilities that run as [tools.fs] has it."`
	Notify           []string `toml:"notify" check:"capabilities" doc:"Names of capabilities whose changes are warnings in the operator's log."`
	ApprovalRequired []string `toml:"approval_required" check:"capabilities" doc:"Names of capabilities whose changes need approval, with require_approval = false too."`
	Blocked          []string `toml:"blocked" check:"capabilities" doc:"Names of capabilities that are not listed and are refused."`
}

// Default is the configuration of an empty file.
func Default() Config {
	return Config{Tools: Tools{
		FS: FS{
			AllowPaths:    []string{},
			DenyPaths:     []string{},
			Policies:      []string{},
			ProtectSecret: "refuse", ProtectExec: "ask", Unprotected: []string{},
			RequireApproval:  true,
			ApprovalTimeout:  Duration(120 * time.Second),
			MaxReadBytes:     10 << 20,
			BinaryPolicy:     "reject",
			LineNumbers:      "auto",
			EditMatching:     "tolerant",
			RespectGitignore: true,
			SearchDocuments:  true,
			SearchDeadline:   Duration(10 * time.Second),
			Checkpoint: Checkpoint{
				MaxFileBytes: 64 << 20,
				MaxBytes:     1 << 30,
				KeepWithin:   Duration(7 * 24 * time.Hour),
				KeepLast:     20,
				Exclude:      []string{},
			},
			Fleet:  Fleet{Durable: "remote"},
			Audit:  Audit{MaxBytes: 320 << 20},
			Limits: Limits{CallsPerSecond: 10_000, CallsAtOnce: 1024},
			Hooks: Hooks{
				BeforeToolCall: []string{}, AfterToolCall: []string{}, ToolResultPersist: []string{}, OnQuestion: []string{}, Webhooks: []string{},
				Timeout: Duration(5 * time.Second), OnError: "deny",
			},
			HTTP: HTTP{Claim: "sub"},
		},
		ACP: ACP{MissingRead: "error"},
		Run: Run{Write: []string{}, Timeout: Duration(10 * time.Minute), Disk: 10 << 30},
		JS:  JS{Time: Duration(5 * time.Minute), Memory: 512 << 20},
		Capability: Capability{Autonomous: []string{}, Notify: []string{}, ApprovalRequired: []string{},
			Blocked: []string{}},
		Sandbox: Sandbox{Mode: "off", Sessions: []string{}, Command: []string{}, Root: "/workspace", Require: true},
		Policy:  Policy{Allow: []string{}, Deny: []string{}},
	}}
}
