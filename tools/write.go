package tools

import (
	"context"
	"fmt"
	"slices"

	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
)

// WriteArgs are the arguments of Write.
type WriteArgs struct {
	FilePath     string  `json:"file_path" doc:"absolute"`
	Content      string  `json:"content"`
	ExpectedHash *string `json:"expected_hash,omitempty" form:"sha256" doc:"only if the file's sha256 is this"`
	DryRun       *bool   `json:"dry_run,omitempty" doc:"show the result, change nothing"`
	Acknowledge  *bool   `json:"acknowledge,omitempty" doc:"only after a refusal asked for it"`
	Encoding     *string `json:"encoding,omitempty" doc:"default: that of the old file, else UTF-8"`
	Parents      *bool   `json:"create_parents,omitempty" doc:"make missing directories"`
}

func (a *WriteArgs) target() string { return a.FilePath }
func (a *WriteArgs) dryRun() bool   { return value(a.DryRun) }
func (*WriteArgs) makes() bool      { return true }

// Write is the payload of kind "write".
type Write struct {
	FilePath     string  `json:"file_path"`
	BytesWritten int64   `json:"bytes_written"`
	CheckpointID *string `json:"checkpoint_id"`
	Created      bool    `json:"created"`
	Encoding     string  `json:"encoding,omitempty"` // when it is not UTF-8
	// LineEndings is "crlf" where the file has kept those, and the content was sent with bare LF.
	LineEndings string `json:"line_endings,omitempty"`
	Changed
}

func (*Write) Kind() string { return "write" }
func (*Write) payload()     {}

// Text says it as Claude Code does.
func (w *Write) Text() string {
	verb, notes := "updated", w.notes()
	if w.LineEndings != "" {
		notes = "\nIts line ends are CRLF, as they were." + notes
	}
	switch {
	case w.Unchanged:
		return "The file " + w.FilePath + " has this content already." + notes
	case w.Created:
		verb = "created"
	}
	return fmt.Sprintf("File %s%s successfully at: %s%s", w.dry(), verb, w.FilePath, notes)
}

var writeTool = define[WriteArgs](toolRow{
	Name:  "Write",
	Title: "Write a file",
	Description: "Replaces a whole file or creates it, atomically. Parent directories must exist, unless " +
		"create_parents; symbolic links are refused. Prefer Edit for changing a part.",
	Changes: true, Idempotent: true,
	Search: dialect.Search{Hint: "create or overwrite a file"},
	aliases: slices.Concat(fileAliases, []args.Alias{
		{Theirs: "filetext contents text data body filecontent filecontents newcontent newcontents fullcontent " +
			"code source filebody filedata", Ours: "content"},
		{Theirs: "overwrite force replace allowoverwrite overwriteexisting", Says: "true",
			Hint: "to keep what is there, use Edit: the whole file is replaced by Write"},
		{Theirs: "append", Says: "false", Hint: "to add to the file, use Edit: the whole of it is replaced by Write"},
		{Theirs: "mode writemode", Says: "w overwrite create write rewrite replace wt",
			Hint: "to add to the file, use Edit: the whole of it is replaced by Write"},
		{Theirs: "createdirs createdirectories createparentdirs makeparents mkdir mkdirs createdir " +
			"createparentdirectories", Ours: "create_parents"},
		{Theirs: verbNames, Says: "create write overwrite save createfile writefile", Hint: "leave it out"},
		{Theirs: "linecount totallines", Says: "*"},
	}),
}, runWrite)

func runWrite(ctx context.Context, s *Suite, c *engine.Call, a *WriteArgs) (Payload, error) {
	done, encoding, err := c.Write(ctx, engine.WriteArgs{Path: a.FilePath, Text: a.Content, Encoding: value(a.Encoding),
		DryRun: value(a.DryRun),
		Rules: engine.Rules{Hash: value(a.ExpectedHash), Meant: value(a.Acknowledge),
			Parents: s.cfg.CreateParents || value(a.Parents)}})
	if err != nil {
		return nil, err
	}
	t := done.Targets[0]
	ch := changed(done, t)
	s.oddities(c, t, &ch)
	w := &Write{
		FilePath: t.True, BytesWritten: int64(len(t.After.Content)), Created: !t.Before.Exists,
		Encoding:     notUTF8(encoding),
		CheckpointID: pointer(done.Checkpoint), Changed: ch,
	}
	if t.After.KeptCRLF {
		w.LineEndings = "crlf"
	}
	return w, nil
}
