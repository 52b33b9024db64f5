package tools

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
)

// GrepArgs is what a model may say to Grep.
type GrepArgs struct {
	Pattern    string  `json:"pattern" form:"number" doc:"regular expression"`
	Path       *string `json:"path,omitempty" doc:"as in Glob, or a file"`
	Glob       *string `json:"glob,omitempty" form:"list" doc:"like *.{ts,tsx} or !*_test.go"`
	Type       *string `json:"type,omitempty" doc:"like rust, py, ts"`
	OutputMode *string `json:"output_mode,omitempty" enum:"files_with_matches|content|count" default:"files_with_matches"`
	IgnoreCase *bool   `json:"-i,omitempty"`
	Numbers    *bool   `json:"-n,omitempty" default:"true"`
	After      *int    `json:"-A,omitempty" min:"0"`
	Before     *int    `json:"-B,omitempty" min:"0"`
	Around     *int    `json:"-C,omitempty" min:"0"`
	Context    *int    `json:"context,omitempty" min:"0" doc:"same as -C"`
	Only       *bool   `json:"-o,omitempty" doc:"only the matched text"`
	Multiline  *bool   `json:"multiline,omitempty" doc:". matches newlines, matches may span lines"`
	HeadLimit  *int    `json:"head_limit,omitempty" min:"0" default:"250" doc:"rows or files; 0: as many as fit"`
	Offset     *int    `json:"offset,omitempty" min:"0" doc:"as in Glob"`
}

func (a *GrepArgs) target() string { return value(a.Path) }

func (a *GrepArgs) asked() engine.Asked {
	return engine.Asked{Pattern: a.Pattern,
		Window: numbers("offset", a.Offset, "head_limit", a.HeadLimit)}
}

const (
	maxContext  = 1000 // lines around a match; more is clamped
	defaultHead = 250
)

var grepTool = define[GrepArgs](Tool{
	Name:  "Grep",
	Title: "Search file contents",
	Description: "Searches with a regular expression (ripgrep syntax, and look-around). " +
		"Lists of files: newest first; lines: by path. " +
		"$ matches before CRLF.",
	Effect:  Reads,
	Search:  dialect.Search{Hint: "search code or text in files with a regular expression"},
	OwnTime: true,
	aliases: []args.Alias{
		{Theirs: "regex regexp", Ours: "pattern", Turn: args.Regexp},
		{Theirs: "regex regexp query search searchterm searchtext searchpattern searchquery searchstring " +
			"searchregex text term keyword needle expression expr find q substring string regexpattern grep",
			Ours: "pattern"},
		{Theirs: dirNames + " filename targetfile filepaths", Ours: "path"},
		{Theirs: "files filefilter", Ours: "path", Turn: args.PathOrGlob},
		{Theirs: "include includes includepattern includepatterns includeglob fileglob globpattern globfilter " +
			"filepattern filepatterns filenamepattern filemask globs pathpattern filenameglob", Ours: "glob"},
		{Theirs: notNames, Ours: "glob", Turn: args.Exclude},
		{Theirs: "filetype filetypes language lang", Ours: "type"},
		{Theirs: "extension extensions fileextension fileextensions ext exts", Ours: "glob", Turn: args.Extension},
		{Theirs: "ignorecase caseinsensitive icase nocase", Ours: "-i"},
		{Theirs: "casesensitive matchcase", Ours: "-i", Turn: args.Opposite},
		{Theirs: "linenumbers showlinenumbers linenumber includelinenumbers withlinenumbers", Ours: "-n"},
		{Theirs: "after aftercontext linesafter contextafter afterlines aftercontextlines", Ours: "-A"},
		{Theirs: "before beforecontext linesbefore contextbefore beforelines beforecontextlines", Ours: "-B"},
		{Theirs: "contextlines linesofcontext around numcontextlines surroundinglines contextsize", Ours: "-C"},
		{Theirs: "onlymatching onlymatch", Ours: "-o"},
		{Theirs: "output mode format resultmode outputformat outputtype returntype", Ours: "output_mode"},
		{Theirs: "filesonly fileswithmatch listfiles namesonly onlyfiles filenamesonly l",
			Ours: "output_mode=files_with_matches"},
		{Theirs: "count countonly countmatches c", Ours: "output_mode=count"},
		{Theirs: "showcontent contentonly includecontent showlines showmatches", Ours: "output_mode=content"},
		{Theirs: "multilinematch dotall dotmatchesnewline multilinemode U", Ours: "multiline"},
		{Theirs: maxNames + " head maxlines maxoutput", Ours: "head_limit"},
		{Theirs: "skip", Ours: "offset"},
		{Theirs: "fixedstrings fixedstring literal isliteral plaintext F fixed", Ours: "pattern", Turn: args.Literal},
		{Theirs: "isregex useregex isregexp regexmode", Ours: "pattern", Turn: args.Regexp},
		{Theirs: "wholeword wholewords wordregexp word matchwholeword w", Ours: "pattern", Turn: args.WholeWord},
		{Theirs: "recursive r R", Says: "true", Hint: "give one file as path"},
		{Theirs: hiddenName, Says: "true", Hint: "hidden files are searched"},
		{Theirs: gitNames, Says: "true", Hint: "ignored files are searched where they are given as path"},
		{Theirs: noGitNames, Says: "false", Hint: "ignored files are searched where they are given as path"},
		{Theirs: verbNames, Says: "grep search rg find", Hint: "leave it out"},
	},
	answers: []Payload{&Grep{}},
}, runGrep, func(path string, _ bool) GrepArgs { return GrepArgs{Pattern: "a", Path: &path} })

func runGrep(ctx context.Context, s *Suite, c *engine.Call, a *GrepArgs) (Payload, error) {
	start := time.Now()
	out, err := s.search(ctx, c, a, false)
	if err != nil {
		return nil, err
	}
	if out.Total.Files+out.Total.Binary == 0 && !out.Partial {
		ctx, cancel := tries(ctx, time.Since(start))
		defer cancel()
		s.others(ctx, c, a, out)
	}
	root := cmp.Or(value(a.Path), s.cfg.WorkspaceRoot)
	if err := s.notSearched(ctx, c, root, &out.Skipped); err != nil {
		return nil, err
	}
	out.Skipped = out.Skipped.whyNone(out.Total.Files)
	out.OddNames = engine.OddNames(out.Root, out.listed)
	return out, nil
}

// search is one search; all says that ignore rules do not hold.
func (s *Suite) search(ctx context.Context, c *engine.Call, a *GrepArgs, all bool) (*Grep, error) {
	root, err := s.searchRoot(value(a.Path))
	if err != nil {
		return nil, err
	}
	m, err := match.Compile(a.Pattern, match.Options{
		IgnoreCase: value(a.IgnoreCase), Multiline: value(a.Multiline), CRLF: true,
	})
	if err != nil {
		return nil, err
	}
	q := grep.Query{Matcher: m, Multiline: value(a.Multiline), OnlyMatching: value(a.Only)}
	p := newPage(value(a.Offset), defaultHead, s.page.Bytes)
	if a.HeadLimit != nil {
		p = newPage(p.offset, *a.HeadLimit, p.most)
	}
	q.Offset, q.Limit = p.offset, p.limit
	if t := value(a.Type); t != "" {
		q.Type = []string{t}
	}
	out := &Grep{Mode: cmp.Or(value(a.OutputMode), "files_with_matches"),
		numbers: a.Numbers == nil || *a.Numbers}
	if g := value(a.Glob); g != "" {
		q.Glob = []string{g}
		out.Note = listNote(g)
	}
	switch out.Mode {
	case "content":
		q.Mode = grep.Content
		q.Offset, q.Limit = p.around()
		if !q.OnlyMatching {
			q.Before, q.After = contextOf(a)
		}
	case "count":
		q.Mode = grep.Count
	}
	err = s.engine.Walk(ctx, c, root, func(ctx context.Context, w grep.Walk) error {
		w.NoIgnore = w.NoIgnore || all
		r, err := grep.Search(ctx, w, q)
		if err != nil {
			return err
		}
		out.scanned = r.Totals.Scanned
		out.single = w.File != nil
		out.fill(r, q, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// contextOf: an explicit -A or -B beats -C, and -C beats context.
func contextOf(a *GrepArgs) (before, after int) {
	around := value(a.Context)
	if a.Around != nil {
		around = *a.Around
	}
	before, after = around, around
	if a.Before != nil {
		before = *a.Before
	}
	if a.After != nil {
		after = *a.After
	}
	return min(before, maxContext), min(after, maxContext)
}

// listNote says how a list of globs was read whose blanks look like those of a name.
func listNote(list string) string {
	globs := grep.ListGlobs(list)
	if len(globs) == len(grep.SplitGlobs(list, ",")) || !slices.ContainsFunc(globs, func(g string) bool { return !strings.ContainsAny(g, "*?[{./!") }) {
		return ""
	}
	return "glob was read as the list " + strings.Join(globs, " | ") + ", and as one name; within a " +
		"list a blank of a name is written \"\\ \""
}
