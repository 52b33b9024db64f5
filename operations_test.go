package moltisfs

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every field that the audit log writes is in the table of docs/operations.md, and the table has no others.
func TestAuditFieldsAreDocumented(t *testing.T) {
	code, err := os.ReadFile("internal/audit/audit.go")
	chain, cerr := os.ReadFile("internal/audit/chain.go")
	if err := errors.Join(err, cerr); err != nil {
		t.Fatal(err)
	}
	code = append(code, chain...)
	page, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| field | meaning |")
	if !ok {
		t.Fatal("docs/operations.md has no table of fields")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	written, told := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile("json:\"([a-z_]+)\"").FindAllSubmatch(code, -1) {
		written[string(m[1])] = true
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
			told[m[1]] = true
		}
	}
	if len(written) < 20 {
		t.Fatalf("only %d fields are written: %v", len(written), written)
	}
	for field := range written {
		if !told[field] {
			t.Errorf("%s is written and not in docs/operations.md", field)
		}
	}
	for field := range told {
		if !written[field] {
			t.Errorf("docs/operations.md tells of %s, which nothing writes", field)
		}
	}
}
