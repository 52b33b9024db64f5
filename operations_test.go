package moltisfs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every field that the audit log writes is in the table of docs/operations.md, and the table has no others.
func TestAuditFieldsAreDocumented(t *testing.T) {
	code, err := os.ReadFile("internal/audit/audit.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| field | meaning |")
	if !ok {
		t.Fatal("docs/operations.md has no table of fields")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var rows string // the first cells
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			rows += cells[1]
		}
	}
	fields := func(pattern, in string) (out []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(in, -1) {
			out = append(out, m[1])
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	written, told := fields("json:\"([a-z_]+)[,\"]", string(code)), fields("`([a-z_]+)`", rows)
	if len(written) < 20 || !slices.Equal(written, told) {
		t.Errorf("written are\n%v, and docs/operations.md tells of\n%v", written, told)
	}
}
