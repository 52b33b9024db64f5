package rank

import (
	"flag"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/ranking.md anew")

// docs/ranking.md says what the package comment says.
func TestDocs(t *testing.T) {
	t.Parallel()
	f, err := parser.ParseFile(token.NewFileSet(), "rank.go", nil,
		parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	body := strings.ReplaceAll(f.Doc.Text(), "[Search]", "search")
	_, body, _ = strings.Cut(body, "\n\n")
	want := "# What comes first\n\n`filesystem.search_content` answers \"where is X?\" in one call. " +
		"This is how it ranks what it\nfound (rendered from the comment of package `internal/rank`).\n\n" + body
	const name = "../../docs/ranking.md"
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(name); err != nil || string(have) != want {
		t.Errorf("docs/ranking.md is not what the package comment says: go test ./internal/rank -update (%v)", err)
	}
}
