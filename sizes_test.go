package moltisfs

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// The sizes beyond which code must be split, or have a row in tooLarge.
const (
	packageLines   = 4000
	functionLines  = 80
	structFields   = 12
	programCeiling = 116550 // lines of Go without tests, of the whole module; lower it when you can
)

// An excess is something that is larger than it should be: how large it may be at most, and why it is so.
// Lower the figure when the thing shrinks; take the row away when it fits.
type excess struct {
	most int
	why  string
}

const (
	answerFields = "an answer or a record: each field is a key that its reader may see"
	hotState     = "state of one hot loop, kept together"
)

// tooLarge has a row for each package ("grep"), function ("grep.run") and struct ("grep.scan") beyond the limits.
var tooLarge = map[string]excess{
	"internal/engine.shared":                        {25, "what one opening holds and all views of it share; each part has a type of its own"},
	"checkpoint":                                    {7634, "one transaction has the row, its contents, the trash and what is open; saving, planning, cleaning and repair share that schema"},
	"cmd/moltis-fs":                                 {9577, "one file a subcommand"},
	"internal/engine":                               {13255, "one envelope around every operation; an operation reaches desk, locks, store and swap, which are of no use apart"},
	"internal/guardfs":                              {9826, "handles of two kinds, Linux and os.Root, and no door beside them; apart, the pieces would need doors to the tree"},
	"tools":                                         {7333, "a sentence for each cause and words for each reason; dialects share the facts"},
	"grep/stream.run":                               {110, hotState},
	"readers/compressed.readCompressed":             {93, "one pass over one format"},
	"readers/office/odf.opendocument":               {227, "one pass over one format"},
	"readers/office/ooxml.wordPart":                 {133, "one pass over one format"},
	"tools/checkpoint_restore.runCheckpointRestore": {107, "a table of cases"},
	"dialect.Call":                                  {15, "what a front knows of one call, and nothing else: useful zero values"},
	"approval.Question":                             {14, "all that a change is, for whoever decides"},
	"approval/queue.record":                         {16, answerFields},
	"checkpoint.Checkpoint":                         {13, answerFields},
	"checkpoint.Filter":                             {15, "options with useful zero values"},
	"checkpoint.Item":                               {17, answerFields},
	"checkpoint.Options":                            {13, "options with useful zero values"},
	"checkpoint.Stats":                              {20, answerFields},
	"checkpoint.Trashed":                            {14, answerFields},
	"checkpoint.opRow":                              {14, "a row of the query: a field is a column"},
	"cmd/moltis-fs.checkpointRow":                   {13, answerFields},
	"cmd/moltis-fs.command":                         {14, "one row of the command table"},
	"config.FS":                                     {36, "each field is a key of [tools.fs]"},
	"grep.Query":                                    {15, "options with useful zero values"},
	"grep.Walk":                                     {14, "options with useful zero values"},
	"grep.Skipped":                                  {15, answerFields},
	"grep/index.Dir":                                {21, hotState},
	"grep/index.Tree":                               {17, hotState},
	"internal/audit.Record":                         {33, answerFields},
	"internal/dialect/capability.definition":        {15, answerFields},
	"internal/edit.document":                        {13, hotState},
	"internal/guardfs.spot":                         {15, hotState},
	"readers.Binary":                                {14, answerFields},
	"readers.Image":                                 {17, answerFields},
	"readers.Notebook":                              {17, answerFields},
	"readers.Options":                               {16, "options with useful zero values"},
	"readers.PDF":                                   {16, answerFields},
	"readers.Text":                                  {22, answerFields},
	"readers/office.htmlWriter":                     {14, hotState},
	"tools.Changed":                                 {16, answerFields},
	"tools.CheckpointRestore":                       {18, answerFields},
	"tools.CheckpointRow":                           {15, answerFields},
	"tools.Grep":                                    {24, answerFields},
	"tools.GrepArgs":                                {15, "each field is an argument of the published schema"}}

func TestSizes(t *testing.T) {
	sizes := map[string]int{} // what is beyond its limit
	limits := map[string]int{}
	packages := map[string]int{}
	total := 0
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		packages[s.pkg()] += s.lines
		total += s.lines
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				name := path.Join(s.pkg(), strings.TrimSuffix(path.Base(s.path), ".go")) + "." + n.Name.Name
				if lines := s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1; lines > functionLines {
					sizes[name], limits[name] = max(sizes[name], lines), functionLines
				}
			case *ast.TypeSpec:
				if st, ok := n.Type.(*ast.StructType); ok && st.Fields.NumFields() > structFields {
					name := s.pkg() + "." + n.Name.Name
					sizes[name], limits[name] = st.Fields.NumFields(), structFields
				}
			}
			return true
		})
	}
	for name, lines := range packages {
		if lines > packageLines {
			sizes[name], limits[name] = lines, packageLines
		}
	}
	for name, size := range sizes {
		switch e, ok := tooLarge[name]; {
		case !ok:
			t.Errorf("%s: %d, more than %d; split it where its subject splits, or give a reason in tooLarge", name, size, limits[name])
		case size > e.most:
			t.Errorf("%s: %d, and it may be %d at most", name, size, e.most)
		}
	}
	for name := range tooLarge {
		if sizes[name] == 0 {
			t.Errorf("%s fits by now; take its row out of tooLarge", name)
		}
	}
	if total > programCeiling {
		t.Errorf("%d lines of Go without tests; the ceiling is %d", total, programCeiling)
	}
}
