// Package config is what the operator wrote: the sections [tools.fs], [tools.fs.checkpoint], [tools.fs.hooks] and [tools.policy] of one TOML
// file, as Go values.
//
// Decode is strict. An unknown key or section, a wrong type, a value out of its list, a glob that can't be read: each is
// a Problem with file, line, column and what to write instead, and all of them come at once, in file order. Nothing is
// ignored and nothing falls back to a default: with one problem there is no Config. Check finds the same in
// a Config that was made in Go.
//
// What Check lets pass and may still be a mistake, such as the name of a tool that is none of ours, comes from Warnings. Locate
// adds to a Problem of either, or of another package, where in the file it stands.
//
// Default is the only source of defaults; the doc tags are the only source of the sentences in Example and Table.
//
// The package opens no file and reads no environment: where the bytes come from is for the caller to know. Config is a plain
// value; everything here is safe for concurrent use.
//
//	cfg, err := config.Decode(data, "moltis.toml")
//	if err != nil {
//		return err // one line per problem: moltis.toml:7:1: tools.fs.track_read: unknown key; did you mean "track_reads"?
//	}
package config

import "time"

// Config is one file.
type Config struct {
	Tools Tools `toml:"tools"`
}

// Tools is the section [tools]. It holds sections only.
type Tools struct {
	FS     FS     `toml:"fs" doc:"The filesystem tools. Every key is optional."`
	Policy Policy `toml:"policy" doc:"Which tools there are at all, by name: exact, \"prefix*\" or \"*\"; case matters. A denied tool is neither listed nor callable."`
}

// FS is [tools.fs]. Sizes are bytes. A list of paths holds absolute globs: * stays within a name, ** crosses
// directories, /x/** covers /x itself too.
//
// Tags: doc is the sentence for the operator; enum the allowed words; sample a value to show for a key that has no default.
type FS struct {
	WorkspaceRoot       string   `toml:"workspace_root" sample:"/home/user/projects/my-app" doc:"Where Glob and Grep search when no path is given, and what hints for relative paths refer to; absolute. It has to be there, and confines nothing: allow_paths does."`
	AllowPaths          []string `toml:"allow_paths" doc:"Absolute globs of the paths the tools may touch, compared with true names, after links; empty allows all that is not denied. A directory on the way to what is allowed can be searched, and shows only that."`
	DenyPaths           []string `toml:"deny_paths" doc:"Absolute globs of the paths no tool may touch or name, whatever they are called there: links, mounts, letter case and look-alike spellings included; deny wins over allow, and a denied directory is denied with all it holds."`
	TrackReads          bool     `toml:"track_reads" doc:"Remember what each session has read, and warn of a Read repeated without a change."`
	MustReadBeforeWrite bool     `toml:"must_read_before_write" doc:"Refuse Write, Edit, MultiEdit and NotebookEdit of what the session has not read as it is now (of lines that were not shown, Edit takes an exact old_string); needs track_reads."`
	RequireApproval     bool     `toml:"require_approval" doc:"Ask the operator, with the diff, before each change."`
	ApprovalTimeout     Duration `toml:"approval_timeout" doc:"How long a question waits before the change is refused."`
	MaxReadBytes        int64    `toml:"max_read_bytes" doc:"Read refuses larger files whole; a window by offset and limit is still served."`
	BinaryPolicy        string   `toml:"binary_policy" enum:"reject|base64" doc:"What Read gives of a binary file: \"reject\" its size only, \"base64\" the bytes too."`
	LineNumbers         string   `toml:"line_numbers" enum:"arrow|tab|compact" doc:"How Read sets line numbers off: \"arrow\" as Claude Code did, \"tab\" as it does now, \"compact\" for fewest tokens."`

	ContextWindowTokens int `toml:"context_window_tokens" sample:"200000" doc:"The model's context window; one Read then takes at most about a fifth of it, between 50 KB and 512 KB, instead of 256 KB."`

	CreateParents bool   `toml:"create_parents" doc:"Let Write make missing parent directories."`
	EditMatching  string `toml:"edit_matching" enum:"tolerant|strict" doc:"How Edit finds old_string: \"tolerant\" also where only blanks, quotes or indentation differ, \"strict\" exactly, line endings aside."`
	HardLinks     string `toml:"hard_links" enum:"break|refuse" doc:"Changing a file that has other names: \"break\" leaves the other names with the old content and says so, \"refuse\" refuses."`
	ReadOnlyFiles string `toml:"read_only_files" enum:"refuse|write" doc:"Changing a file whose mode forbids writing: \"refuse\", or \"write\" where the directory allows it."`
	Durability    string `toml:"durability" enum:"full|none" doc:"When a change is reported: \"full\" after it is on stable storage, \"none\" at once, so that a power cut may lose it."`

	RespectGitignore bool     `toml:"respect_gitignore" doc:"Leave out of Glob and Grep what .gitignore, .ignore, .git/info/exclude and git's core.excludesFile name. A file of rules that the lists close has no say."`
	RegexFallback    bool     `toml:"regex_fallback" doc:"Run patterns with look-around or back-references on a slower engine; without it they are refused."`
	SearchIndex      string   `toml:"search_index" enum:"auto|off" doc:"\"auto\" keeps an index in memory of large trees that are searched again. Such searches are faster, but may miss for up to 5 seconds what another program wrote through a memory mapping or an outside hard link. \"off\" keeps none."`
	SearchDeadline   Duration `toml:"search_deadline" doc:"How long one Glob or Grep may take; what was found by then is given, marked incomplete."`

	ImageMaxEdge  int   `toml:"image_max_edge" doc:"Images are scaled down to this many pixels on the longer edge."`
	ImageMaxBytes int64 `toml:"image_max_bytes" doc:"An image is encoded again until its base64, which is what APIs limit, fits in this many bytes."`

	CheckpointBeforeMutation bool `toml:"checkpoint_before_mutation" doc:"Store what a file was before each change, for checkpoint_restore; recommended, it costs disk space."`

	Checkpoint Checkpoint `toml:"checkpoint" doc:"The store behind checkpoint_before_mutation."`
	Hooks      Hooks      `toml:"hooks" doc:"Programs that are asked about each call; package hook says what they read and write."`
}

// Hooks is [tools.fs.hooks]. A program is an absolute path, with its arguments behind it, separated by
// blanks. There is no shell.
type Hooks struct {
	BeforeToolCall    []string `toml:"before_tool_call" doc:"Programs that see each call before it is carried out, and may change its arguments or block it: each an absolute path, and its arguments behind it. The call is JSON on standard input; exit 0 lets it go on, exit 1 blocks it with standard error as the reason."`
	AfterToolCall     []string `toml:"after_tool_call" doc:"Programs that see how each call ended."`
	ToolResultPersist []string `toml:"tool_result_persist" doc:"Programs that see each answer before it is given, and may change or withhold it."`
	Timeout           Duration `toml:"timeout" doc:"How long one hook may take."`
	OnError           string   `toml:"on_error" enum:"deny|allow" doc:"When a hook fails or is too slow: \"deny\" the call, or \"allow\" it as if the hook were not there."`
}

// Checkpoint is [tools.fs.checkpoint].
type Checkpoint struct {
	Durability    string   `toml:"durability" enum:"strict|relaxed" doc:"\"strict\" has the old content on stable storage before the change is visible, \"relaxed\" soon after."`
	OnError       string   `toml:"on_error" enum:"deny|allow" doc:"When a checkpoint can't be stored: \"deny\" the change, or \"allow\" it and say so."`
	MaxFileBytes  int64    `toml:"max_file_bytes" doc:"Larger files are changed without a checkpoint, and the result says so."`
	MaxBytes      int64    `toml:"max_bytes" doc:"Size of the whole store, its log included; the oldest unpinned checkpoints go to make room."`
	KeepWithin    Duration `toml:"keep_within" doc:"Checkpoints younger than this are kept while max_bytes allows."`
	KeepLast      int      `toml:"keep_last" doc:"So many checkpoints of each file are kept while max_bytes allows, however old."`
	Exclude       []string `toml:"exclude" doc:"Globs of files whose content is never stored, nor that of what is below; without a slash they hold at any depth. Links are followed in what stands before the first wildcard."`
	OnRead        string   `toml:"on_read" enum:"off|hash|content" doc:"What to remember of files that are only read: \"off\" nothing, \"hash\" to notice changes made outside, \"content\" to undo them too."`
	OtherSessions bool     `toml:"other_sessions" doc:"Let a session see and restore the checkpoints of others."`
	EncryptTo     string   `toml:"encrypt_to" sample:"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p" doc:"Encrypt the store to this age recipient; restoring then needs its identity."`
}

// Policy is [tools.policy].
type Policy struct {
	Allow []string `toml:"allow" doc:"Names of the tools there are; empty means all."`
	Deny  []string `toml:"deny" doc:"Names of the tools there are not; deny wins. NotebookEdit goes with Edit, checkpoint_restore with the last of Write, Edit and MultiEdit, unless allow has its very name."`
}

// Default is the configuration of an empty file.
func Default() Config {
	return Config{Tools: Tools{
		FS: FS{
			AllowPaths:       []string{},
			DenyPaths:        []string{},
			RequireApproval:  true,
			ApprovalTimeout:  Duration(120 * time.Second),
			MaxReadBytes:     10 << 20,
			BinaryPolicy:     "reject",
			LineNumbers:      "arrow",
			EditMatching:     "tolerant",
			HardLinks:        "break",
			ReadOnlyFiles:    "refuse",
			Durability:       "full",
			RespectGitignore: true,
			RegexFallback:    true,
			SearchIndex:      "off",
			SearchDeadline:   Duration(10 * time.Second),
			ImageMaxEdge:     1568,
			ImageMaxBytes:    5 << 20,
			Checkpoint: Checkpoint{
				Durability:   "strict",
				OnError:      "deny",
				MaxFileBytes: 64 << 20,
				MaxBytes:     1 << 30,
				KeepWithin:   Duration(7 * 24 * time.Hour),
				KeepLast:     20,
				Exclude:      []string{},
				OnRead:       "off",
			},
			Hooks: Hooks{
				BeforeToolCall: []string{}, AfterToolCall: []string{}, ToolResultPersist: []string{},
				Timeout: Duration(5 * time.Second), OnError: "deny",
			},
		},
		Policy: Policy{Allow: []string{}, Deny: []string{}},
	}}
}
