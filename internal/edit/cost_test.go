package edit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestApplyLooksAtTheClock: between two edits Apply asks whether to go on.
func TestApplyLooksAtTheClock(t *testing.T) {
	var edits []Edit
	for i := range 20 {
		edits = append(edits, Edit{Old: fmt.Sprintf("line %02d", i), New: "x"})
	}
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "line %02d\n", i)
	}
	asked := 0
	r, err := Apply([]byte(text.String()), edits, Options{Err: func() error {
		if asked++; asked > 2 {
			return context.DeadlineExceeded
		}
		return nil
	}})
	if r != nil || !errors.Is(err, context.DeadlineExceeded) || asked > 4 {
		t.Errorf("%v, %v, asked %d times", r, err, asked)
	}
	if r, err := Apply([]byte(text.String()), edits, Options{Err: func() error { return nil }}); err != nil || r.Replacements != 20 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNotebookIsReadTwice: however many values of a cell change, the whole of the notebook is read before and after, and not in
// between.
func TestNotebookIsReadTwice(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [`)
	for i := range 500 {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, `{"cell_type": "markdown", "id": "c%d", "metadata": {}, "attachments": {"a": {}}, "source": ["one"]}`, i)
	}
	b.WriteString("]}\n")
	once := testing.AllocsPerRun(5, func() {
		if _, err := parseNotebook(b.Bytes()); err != nil {
			t.Fatal(err)
		}
	})
	all := testing.AllocsPerRun(5, func() {
		r, err := ApplyNotebook(b.Bytes(), NotebookEdit{CellID: "c250", CellType: "code", Source: "two"})
		if err != nil || r.AttachmentsRemoved != 1 || !bytes.Contains(r.Content, []byte(`"source": ["two"]`)) {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	if all > 2.5*once {
		t.Errorf("%.0f allocations to change a cell, %.0f to read the notebook", all, once)
	}
}
