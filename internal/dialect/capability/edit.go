package capability

import (
	"context"
	"slices"

	"moltisfs/internal/args"
	"moltisfs/internal/engine"
	"moltisfs/internal/engine/replace"
)

type editArgs struct {
	Path     string  `json:"path"`
	Glob     *string `json:"include_glob,omitempty"`
	Pattern  string  `json:"pattern"`
	Replace  string  `json:"replace"`
	Regex    bool    `json:"regex,omitempty" default:"false"`
	Expected *int    `json:"expected_replacements,omitempty" min:"1"`
	All      bool    `json:"replace_all,omitempty" default:"false"`
	DryRun   bool    `json:"dry_run,omitempty" default:"false"`
	Ignored  bool    `json:"include_all,omitempty" default:"false"`
}

func (a *editArgs) paths() []string { return []string{a.Path} }

func (a *editArgs) asked() engine.Asked { return engine.Asked{Pattern: a.Pattern} }

func (a *editArgs) dryRun() bool { return a.DryRun }

func (a *editArgs) check() error {
	switch {
	case a.Pattern == "":
		return args.Errorf("give the text or the regular expression to replace", "pattern is empty")
	case !a.Regex && a.Pattern == a.Replace:
		return args.Errorf("nothing would change", "pattern and replace are the same")
	case (a.Expected != nil) == a.All:
		return args.Errorf("count the matches by filesystem.search_content with total_only=true and "+
			"case_sensitive=true, or say replace_all=true", "give exactly one of expected_replacements and replace_all")
	}
	return nil
}

// perFile is a file that was changed, or would be.
type perFile struct {
	Path  string `json:"path"`
	Count int    `json:"replacements"`
}

// notEdited is a file that has matches and is left alone.
type notEdited struct {
	Path   string `json:"path"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// edited are the answer of edit.
type edited struct {
	Applied string         `json:"applied"`
	Total   int            `json:"total_replacements"`
	Changed int            `json:"files_changed"`
	Files   []perFile      `json:"per_file"`
	Skipped []notEdited    `json:"skipped"`
	Missed  map[string]int `json:"not_searched"`
	Diff    string         `json:"diff"`
}

func runEdit(ctx context.Context, c *call, a *editArgs) (any, error) {
	rule, err := replace.Compile(a.Pattern, a.Replace, a.Regex)
	if err != nil {
		return nil, err
	}
	in := engine.ReplaceArgs{Root: a.Path, Rule: rule, Expected: value(a.Expected, 0),
		Ignored: a.Ignored, DryRun: a.DryRun}
	if glob := value(a.Glob, ""); glob != "" {
		in.Glob = []string{glob}
	}
	r, err := c.e.Replace(ctx, c.Call, in)
	if err != nil {
		return nil, err
	}
	out := &edited{Applied: "full", Total: r.Total, Changed: len(r.Files), Files: []perFile{},
		Skipped: skippedOf(r), Missed: map[string]int{}, Diff: clip(r.Done.Diff())}
	switch {
	case a.DryRun:
		out.Applied = "preview"
	case len(r.Skipped) > 0:
		out.Applied = "partial"
	}
	for _, f := range r.Files {
		out.Files = append(out.Files, perFile(f))
	}
	for _, n := range r.NotSearched.Notes() {
		out.Missed[n.Reason] = n.Count
	}
	return out, nil
}

// skippedOf are the files that could not be changed, each with the type of its error.
func skippedOf(r *engine.Replacing) []notEdited {
	out := []notEdited{}
	for _, no := range r.Skipped {
		kind := (&definition{}).kindOf(no.Cause)
		out = append(out, notEdited{no.Path, kind, tell(kind, no.Path, no)})
	}
	return slices.Clip(out)
}
