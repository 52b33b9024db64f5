package notebook

import (
	"bytes"
	"fmt"
	"testing"
)

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
		if _, err := locate(b.Bytes()); err != nil {
			t.Fatal(err)
		}
	})
	all := testing.AllocsPerRun(5, func() {
		r, err := Apply(b.Bytes(), Edit{CellID: "c250", CellType: "code", Source: "two"})
		if err != nil || r.AttachmentsRemoved != 1 || !bytes.Contains(r.Content, []byte(`"source": ["two"]`)) {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	if all > 2.5*once {
		t.Errorf("%.0f allocations to change a cell, %.0f to read the notebook", all, once)
	}
}
