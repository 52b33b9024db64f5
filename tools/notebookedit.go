package tools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/refusal"
	"moltisfs/internal/session"
	"moltisfs/readers/notebook"
)

// NotebookEditArgs are the arguments of NotebookEdit.
type NotebookEditArgs struct {
	NotebookPath string  `json:"notebook_path" doc:"absolute"`
	CellID       *string `json:"cell_id,omitempty" form:"number" doc:"insert: after this cell; left out: first"`
	NewSource    *string `json:"new_source,omitempty" doc:"for replace and insert"`
	CellType     *string `json:"cell_type,omitempty" enum:"code|markdown|raw" doc:"for insert"`
	EditMode     *string `json:"edit_mode,omitempty" enum:"replace|insert|delete" default:"replace"`
	ExpectedHash *string `json:"expected_hash,omitempty" form:"sha256" doc:"as in Write"`
	DryRun       *bool   `json:"dry_run,omitempty"`
}

func (a *NotebookEditArgs) target() string { return a.NotebookPath }
func (a *NotebookEditArgs) dryRun() bool   { return value(a.DryRun) }

func (a *NotebookEditArgs) check() error {
	mode := cmp.Or(value(a.EditMode), "replace")
	switch {
	case mode != "insert" && value(a.CellID) == "":
		return bad("send the cell_id that Read shows", "%s needs a cell_id", mode)
	case mode == "insert" && a.CellType == nil:
		return bad("add cell_type: code or markdown", "insert needs a cell_type")
	case mode != "delete" && a.NewSource == nil:
		return bad("add new_source and call again", "%s needs new_source", mode)
	}
	return nil
}

// NotebookEdit is the payload of kind "notebook_edit".
type NotebookEdit struct {
	FilePath       string `json:"file_path"`
	EditMode       string `json:"edit_mode"`
	CellID         string `json:"cell_id"` // of an inserted cell: the one it was given
	CellType       string `json:"cell_type"`
	Cell           int    `json:"cell"` // its position, from 1
	TotalCells     int    `json:"total_cells"`
	OutputsCleared int    `json:"outputs_cleared,omitempty"`
	// AttachmentsRemoved are images of a text cell that became a code cell, which can have none.
	AttachmentsRemoved int     `json:"attachments_removed,omitempty"`
	Note               string  `json:"note,omitempty"`
	CheckpointID       *string `json:"checkpoint_id"`
	Changed
}

func (*NotebookEdit) Kind() string     { return "notebook_edit" }
func (*NotebookEdit) payload()         {}
func (n *NotebookEdit) noted() *string { return &n.Note }

// Text says it as Claude Code does.
func (n *NotebookEdit) Text() string {
	verb := map[string]string{"insert": "inserted", "delete": "deleted"}[n.EditMode]
	if verb == "" {
		verb = "updated"
	}
	if n.Unchanged {
		return fmt.Sprintf("Cell %s of %s has this source already.%s", n.CellID, n.FilePath, n.notes())
	}
	said := fmt.Sprintf("Cell %s %s%s (%s, %d of %d) in %s.", n.CellID, n.dry(), verb, n.CellType,
		n.Cell, max(n.TotalCells, n.Cell), n.FilePath)
	if n.AttachmentsRemoved > 0 {
		said += "\n[" + plural(n.AttachmentsRemoved, "attachment") + " removed: a code cell can have " +
			"none]"
	}
	if n.Note != "" {
		said += "\n[" + n.Note + "]"
	}
	return said + n.notes()
}

var notebookEditTool = define[NotebookEditArgs](toolRow{
	Name:  "NotebookEdit",
	Title: "Edit a notebook cell",
	Description: "Replaces, inserts or deletes one cell of a Jupyter notebook; replacing clears its " +
		"outputs.",
	Changes: true,
	Search:  dialect.Search{Hint: "change a cell of a Jupyter notebook"},
	Follows: []string{"Edit"},
	aliases: []args.Alias{
		{Theirs: "path filepath", Ours: "notebook_path", Quiet: true},
		{Theirs: fileNames + " notebook notebookfile targetnotebook", Ours: "notebook_path"},
		{Theirs: "cell id", Ours: "cell_id"},
		{Theirs: "cellindex cellnumber cellidx cellno index targetcell", Hint: "send the cell_id that Read shows"},
		{Theirs: "source newcontent content newcode code newtext text newstring newstr newcellsource cellsource " +
			"newcellcontent", Ours: "new_source"},
		{Theirs: "type kind celllanguage", Ours: "cell_type"},
		{Theirs: "mode " + verbNames, Ours: "edit_mode"},
	},
	refuses: map[engine.Cause]func(*about, *Refusal){refusal.NoSuchCell: noCell, refusal.CellUnseen: func(a *about, r *Refusal) {
		r.Next = read(a.path)
		r.Next.Args["offset"], r.Next.Args["limit"] = factsOf[refusal.CellFacts](a).Cell, 1
	}},
}, runNotebookEdit)

func runNotebookEdit(ctx context.Context, s *Suite, c *engine.Call,
	a *NotebookEditArgs) (Payload, error) {
	e := notebook.Edit{Mode: cmp.Or(value(a.EditMode), "replace"), CellID: value(a.CellID),
		CellType: value(a.CellType), Source: value(a.NewSource)}
	var result *notebook.Result
	rules := engine.Rules{Read: engine.ReadSome, Hash: value(a.ExpectedHash)}
	plan := engine.Plan{DryRun: value(a.DryRun), Op: checkpoint.Op{Kind: checkpoint.KindEdit},
		Summary: strings.TrimSpace(e.Mode + " notebook cell " + clip(e.CellID, 64))}
	done, err := c.Rewrite(ctx, a.NotebookPath, rules, plan, func(t *engine.Target) (err error) {
		if !t.Before.Exists {
			return engine.Refuse(engine.Absent, a.NotebookPath, nil)
		}
		if result, err = notebook.Apply(t.Before.Content, e); err != nil {
			return err
		}
		if err := s.cellSeen(t, e.Mode, result); err != nil {
			return err
		}
		t.After = engine.After{Kind: guardfs.KindFile, Content: result.Content,
			Shown: cellsAfter(t.Known.Seen, e.Mode, result)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t := done.Targets[0]
	ch := changed(done, t)
	ch.unlessAsked(a.ExpectedHash)
	return &NotebookEdit{
		FilePath: t.True, EditMode: e.Mode, CellID: result.CellID, CellType: result.CellType,
		Cell: result.Cell, TotalCells: result.Cells,
		OutputsCleared: result.OutputsCleared, AttachmentsRemoved: result.AttachmentsRemoved,
		Note: ignoredByDelete(&e, result), CheckpointID: pointer(done.Checkpoint),
		Changed: ch,
	}, nil
}

// cellSeen refuses, where files must be read first, to replace or delete a cell whose source the
// session was not shown. An Edit holds what it takes away; this call does not.
func (s *Suite) cellSeen(t *engine.Target, mode string, r *notebook.Result) error {
	seen := t.Known.Seen
	if mode == "insert" || !s.cfg.MustReadBeforeWrite || !t.Known.Tracked || seen != nil &&
		(seen.Whole || session.Cover(seen.Sources, r.Cell, r.Cell)) {
		return nil
	}
	if seen != nil && seen.Unit == "line" && session.Cover(seen.Ranges, r.FirstLine, r.LastLine) {
		return nil
	}
	return engine.Refuse(refusal.CellUnseen, t.Path, refusal.CellFacts{ID: quote(r.CellID), Cell: r.Cell})
}

// cellsAfter gives the knowledge of a session that knew seen before an edit of a notebook: the same cells
// in their new places, and the cell it wrote.
func cellsAfter(seen *session.Seen, mode string, r *notebook.Result) *engine.ReadRecord {
	after := &engine.ReadRecord{Unit: "cell", Lines: r.Cells}
	if seen != nil {
		if after.Sources = shiftCells(seen.Sources, mode, r.Cell); seen.Unit == "cell" {
			after.Ranges = shiftCells(seen.Ranges, mode, r.Cell)
		}
	}
	own := session.Range{First: r.Cell, Last: r.Cell}
	if mode != "delete" {
		after.Sources = append(after.Sources, own)
	}
	if mode == "insert" {
		after.Ranges = append(after.Ranges, own)
	}
	return after
}

// shiftCells moves the cells from cell on, after one was inserted before them, or the first of them
// deleted.
func shiftCells(in []session.Range, mode string, cell int) (out []session.Range) {
	for _, r := range in {
		before := session.Range{First: r.First, Last: min(r.Last, cell-1)}
		switch mode {
		case "insert":
			out = append(out, before, session.Range{First: max(r.First, cell) + 1, Last: r.Last + 1})
		case "delete":
			out = append(out, before, session.Range{First: max(r.First, cell+1) - 1, Last: r.Last - 1})
		default:
			out = append(out, r)
		}
	}
	return slices.DeleteFunc(out, func(r session.Range) bool { return r.Last < r.First })
}

// ignoredByDelete names the arguments of a delete that mean nothing. An empty source is left out: Claude Code's schema
// asks for one.
func ignoredByDelete(e *notebook.Edit, r *notebook.Result) string {
	var names []string
	if e.Mode == "delete" && e.Source != "" {
		names = append(names, "new_source")
	}
	if e.Mode == "delete" && e.CellType != "" && e.CellType != r.CellType {
		names = append(names, "cell_type")
	}
	if len(names) == 0 {
		return ""
	}
	return "Ignored, because the cell is deleted: " + strings.Join(names, ", ") + "."
}

type noCellFields struct {
	Count   int      `json:"count"`
	Cells   []string `json:"cells,omitempty"`
	Nearest string   `json:"nearest,omitempty"`
}

// Text names the cells that there are.
func (n noCellFields) Text() string {
	if len(n.Cells) == 0 {
		return ""
	}
	return "cells: " + strings.Join(n.Cells, ", ")
}

func noCell(a *about, r *Refusal) {
	e := factsOf[*notebook.NoCellError](a)
	sent, _ := asMap(a.args)["cell_id"].(string)
	n, err := strconv.Atoi(sent)
	isNumber := err == nil && n >= 1 && n <= len(e.Cells)
	r.Next, r.Fields = read(a.path), noCellFields{e.Count, e.Cells, e.Nearest}
	switch {
	case e.Count > 1:
		r.Reason = KindNotUnique
	case e.Nearest == "" && isNumber:
		r.Hint = fmt.Sprintf("Take a cell_id from %s, which counts cells from 1: cell %d is %s.", a.s.tool("Read"), n,
			quote(e.Cells[n-1]))
	case e.Nearest != "":
		r.Hint = "Did you mean cell_id " + quote(e.Nearest) + "?"
		r.Next = again(a.tool, a.args, map[string]any{"cell_id": e.Nearest})
	}
}
