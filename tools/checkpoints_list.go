package tools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/refusal"
)

// CheckpointsListArgs is what a model may say to checkpoints_list.
type CheckpointsListArgs struct {
	Limit        *int    `json:"limit,omitempty" min:"1" max:"100" default:"20"`
	PathContains *string `json:"path_contains,omitempty"`
	Path         *string `json:"file_path,omitempty" doc:"exactly this path"`
	Tool         *string `json:"tool,omitempty" doc:"only changes by this tool, or external"`
	Session      *string `json:"session,omitempty"`
	Turn         *string `json:"turn,omitempty"`
	Since        *string `json:"since,omitempty" doc:"a local time, one with a zone, or an age like 2h, 7d"`
	Until        *string `json:"until,omitempty"`
	Cursor       *string `json:"cursor,omitempty" doc:"next_cursor of the last answer"`
}

// Checkpoints is the payload of kind "checkpoints".
type Checkpoints struct {
	Count       int             `json:"count"`
	Checkpoints []CheckpointRow `json:"checkpoints"`
	// Denied counts paths that this session may not read today. They are not named, and a checkpoint
	// of nothing else is left out.
	Denied int    `json:"denied,omitempty"`
	Next   string `json:"next_cursor,omitempty"`
	Note   string `json:"note,omitempty"` // that there are none to come
}

// CheckpointRow is one checkpoint in a listing, in Moltis' names.
type CheckpointRow struct {
	ID         string   `json:"id"`
	CreatedAt  int64    `json:"createdAt"` // Unix seconds
	Reason     string   `json:"reason"`    // the tool, or what it is where no tool made it
	SourcePath string   `json:"sourcePath"`
	SourceKind string   `json:"sourceKind"`
	Existed    bool     `json:"existed"`
	Paths      []string `json:"paths,omitempty"` // when there are several
	Label      string   `json:"label,omitempty"`
	Session    string   `json:"session,omitempty"` // when it is another than the caller's
	Turn       string   `json:"turn,omitempty"`
	Pinned     bool     `json:"pinned,omitempty"`
	Outcome    string   `json:"outcome,omitempty"`
	Purged     bool     `json:"purged,omitempty"` // old content was removed for good
	// NotStored says why old content never was in the store: "too_large", "excluded", ...
	NotStored string `json:"not_stored,omitempty"`
	Appended  int64  `json:"appended,omitempty"` // bytes, in place; below 0: they were cut off again
}

// what names its paths, the first for all of them.
func (c *CheckpointRow) what() string {
	if len(c.Paths) > 1 {
		return fmt.Sprintf("%s and %d more", edit.ShownPath(c.SourcePath), len(c.Paths)-1)
	}
	return edit.ShownPath(c.SourcePath)
}

// marks are what a rewind can go by, and the pin; "" when there is none.
func (c *CheckpointRow) marks() string {
	var marks []string
	if c.Session != "" {
		marks = append(marks, "session "+edit.ShownPath(c.Session))
	}
	if c.Turn != "" {
		marks = append(marks, "turn "+edit.ShownPath(c.Turn))
	}
	if c.Label != "" {
		marks = append(marks, "label "+edit.ShownPath(c.Label))
	}
	if c.Pinned {
		marks = append(marks, "pinned")
	}
	if len(marks) == 0 {
		return ""
	}
	return " [" + strings.Join(marks, ", ") + "]"
}

func (*Checkpoints) Kind() string { return "checkpoints" }
func (*Checkpoints) payload()     {}

// Text is a line a checkpoint, newest first. It holds all that a next call can be made from: some
// clients show the model nothing else.
func (p *Checkpoints) Text() string {
	var b strings.Builder
	if p.Count == 0 {
		b.WriteString("No checkpoints found\n")
	}
	for _, c := range p.Checkpoints {
		what := c.what()
		if !c.Existed {
			what += " (was not there)"
		}
		if c.Purged {
			what += " (purged)"
		}
		if c.Appended > 0 {
			what += fmt.Sprintf(" (%d bytes appended)", c.Appended)
		} else if c.Appended < 0 {
			what += fmt.Sprintf(" (%d appended bytes taken back)", -c.Appended)
		}
		if c.NotStored != "" {
			what += " (what was there is not stored: " + c.NotStored + ")"
		}
		what += c.marks()
		fmt.Fprintf(&b, "%s %s %s %s\n", c.ID, time.Unix(c.CreatedAt, 0).UTC().Format(time.RFC3339),
			edit.ShownPath(c.Reason), what)
	}
	if p.Denied > 0 {
		fmt.Fprintf(&b, "[%s not shown: out of reach]\n", plural(p.Denied, "path"))
	}
	if p.Note != "" {
		b.WriteString("[" + p.Note + "]\n")
	}
	if p.Next != "" {
		fmt.Fprintf(&b, "[more: cursor %s]\n", p.Next)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var checkpointsListTool = define[CheckpointsListArgs](Tool{
	Name:        "checkpoints_list",
	Title:       "List checkpoints",
	Description: "Lists the states that checkpoint_restore can go back to, newest first.",
	Effect:      Reads,
	Search:      dialect.Search{Wanted: true, Hint: "history of changes to files, list undo points"},
	aliases: slices.Concat(timeAliases, fileAliases, []args.Alias{
		{Theirs: maxNames + " n last", Ours: "limit"},
		{Theirs: "contains query search filter pathfilter substring pattern", Ours: "path_contains"},
		{Theirs: "toolname", Ours: "tool"},
		{Theirs: "sessionid", Ours: "session"},
		{Theirs: "before untiltime endtime olderthan", Ours: "until"},
		{Theirs: "nextcursor pagetoken nextpagetoken", Ours: "cursor"},
		{Theirs: verbNames, Says: "list checkpointslist", Hint: "leave it out"},
	}),
	answers: []Payload{&Checkpoints{}},
}, runCheckpointsList, func(path string, _ bool) CheckpointsListArgs { return CheckpointsListArgs{Path: &path} })

func runCheckpointsList(ctx context.Context, s *Suite, c *engine.Call,
	a *CheckpointsListArgs) (Payload, error) {
	if a.Path != nil {
		if r := s.asRecorded(*a.Path); r != nil {
			if whole := s.spelled(*a.Path); whole != "" {
				r.Next = again("checkpoints_list", a, map[string]any{"file_path": whole})
			}
			return nil, r
		}
	}
	f := checkpoint.Filter{
		Path: value(a.Path), PathContains: strings.TrimSpace(value(a.PathContains)), Tool: value(a.Tool),
		Turn:    value(a.Turn),
		Session: value(a.Session), Limit: 20, Cursor: value(a.Cursor),
	}
	var names []string // of the path
	if f.Path != "" {
		names = s.engine.Names(c, f.Path)
		f.Path, f.Also = names[0], names[1:]
	}
	f.NoReads = f.Path == "" && f.Tool == "" // what was kept of reads is for those who look for it
	if a.Limit != nil {
		f.Limit = *a.Limit
	}
	var err error
	if f.Since, err = when("since", a.Since); err != nil {
		return nil, err
	}
	if f.Until, err = when("until", a.Until); err != nil {
		return nil, err
	}
	out := &Checkpoints{Checkpoints: []CheckpointRow{}}
	if !s.cfg.CheckpointBeforeMutation {
		out.Note = strings.TrimPrefix(refusal.Off, "; ")
	}
	hidden := map[string]bool{} // of a list, most paths come again and again
	for limit, pages := f.Limit, 0; ; pages++ {
		page, err := s.engine.Checkpoints(ctx, c, f)
		if err != nil {
			return nil, err
		}
		for i := range page.Checkpoints {
			s.listed(c, out, &page.Checkpoints[i], f, names, hidden)
		}
		// What other sessions did elsewhere fills no page.
		out.Next, f.Cursor, f.Limit = page.Next, page.Next, limit-len(out.Checkpoints)
		if page.Next == "" || f.Limit <= 0 || pages == maxPasses || ctx.Err() != nil {
			break
		}
	}
	out.Count = len(out.Checkpoints)
	return out, nil
}

// maxPasses is how often a list looks on for what is within reach.
const maxPasses = 50

// listed adds the row of a checkpoint, as far as its paths may be named. names are those of the path
// that is asked for.
func (s *Suite) listed(c *engine.Call, out *Checkpoints, cp *checkpoint.Checkpoint,
	f checkpoint.Filter, names []string, hidden map[string]bool) {
	asked, denied := 0, 0
	cp.Changes = slices.DeleteFunc(cp.Changes, func(ch checkpoint.Recorded) bool {
		no, known := hidden[ch.Path]
		if !known {
			no = s.engine.Denies(c, ch.Path)
			hidden[ch.Path] = no
		}
		switch {
		case no && ch.Role != checkpoint.RoleParent:
			denied++
		case !no && (f.Path == "" || slices.Contains(names, ch.Path)) &&
			strings.Contains(strings.ToLower(ch.Path), strings.ToLower(f.PathContains)):
			asked++
		}
		return no
	})
	switch {
	case asked > 0 || denied == 0:
		out.Checkpoints = append(out.Checkpoints, rowFor(c, cp))
	case f.Path != "" || f.PathContains != "":
		return // that there is one would answer whether there is such a name
	case cp.Session != c.Session:
		return // the work of another session somewhere else
	}
	out.Denied += denied
}

// rowFor is the row of a checkpoint as a caller sees it.
func rowFor(c *engine.Call, cp *checkpoint.Checkpoint) CheckpointRow {
	row := rowOf(cp)
	if cp.Session != c.Session {
		row.Session = cp.Session
	}
	return row
}

func rowOf(c *checkpoint.Checkpoint) CheckpointRow {
	row := CheckpointRow{ID: string(c.ID), CreatedAt: c.Time.Unix(), Reason: cmp.Or(c.Tool, c.Kind),
		Label: c.Label, Turn: c.Turn, Pinned: c.Pinned}
	if c.Outcome != checkpoint.Committed { // which is what everybody presumes
		row.Outcome = string(c.Outcome)
	}
	var paths []string
	for _, ch := range c.Changes {
		if ch.Role == checkpoint.RoleParent {
			continue
		}
		switch {
		case ch.Skipped == checkpoint.SkipPurged:
			row.Purged = true
		case ch.Role == checkpoint.RoleAppended && ch.Skipped == checkpoint.SkipAppended:
		case ch.Skipped != checkpoint.SkipParked && row.NotStored == "":
			row.NotStored = ch.Skipped
		}
		if ch.Role == checkpoint.RoleAppended {
			row.Appended = ch.After.Size - ch.Before.Size
		}
		if row.SourcePath == "" {
			row.SourcePath, row.SourceKind = ch.Path, sourceKind(ch.Before.Kind)
			row.Existed = ch.Before.Kind != checkpoint.Absent
		}
		paths = append(paths, ch.Path)
	}
	if len(paths) > 1 {
		row.Paths = paths
	}
	if len(paths) == 0 && len(c.Changes) > 0 { // of directories alone
		ch := &c.Changes[0]
		row.SourcePath, row.SourceKind, row.Existed = ch.Path, sourceKind(ch.Before.Kind),
			ch.Before.Kind != checkpoint.Absent
	}
	return row
}

// sourceKind is Moltis' word for what was there.
func sourceKind(k checkpoint.Kind) string {
	switch k {
	case checkpoint.Dir:
		return "directory"
	case checkpoint.Absent:
		return ""
	}
	return string(k)
}
