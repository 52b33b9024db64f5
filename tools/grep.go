package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/alternatives"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/refusal"
	"moltisfs/readers"
)

// GrepArgs are the arguments of Grep.
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
	Only       *bool   `json:"-o,omitempty" doc:"only the match"`
	Multiline  *bool   `json:"multiline,omitempty" doc:". matches newlines, matches may span lines"`
	HeadLimit  *int    `json:"head_limit,omitempty" min:"0" default:"250" doc:"rows or files; 0: as many as fit"`
	Offset     *int    `json:"offset,omitempty" min:"0" doc:"as in Glob"`
	Encoding   *string `json:"encoding,omitempty"`
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

var grepTool = define[GrepArgs](toolRow{
	Name:  "Grep",
	Title: "Search file contents",
	Description: "Searches text and documents by regular expression (ripgrep syntax). " +
		"Files: newest first; lines: by path. " +
		"$ matches before CRLF.",
	Search:  dialect.Search{Hint: "search code or text in files with a regular expression"},
	OwnTime: true,
	aliases: []args.Alias{
		{Theirs: "regex regexp query search searchterm searchtext searchpattern searchquery searchstring " +
			"searchregex text term keyword needle expression expr find q substring string regexpattern grep",
			Ours: "pattern"},
		{Theirs: dirNames + " filename targetfile filepaths", Ours: "path"},
		{Theirs: "files filefilter", Hint: "use path for one file or directory, glob for a pattern of names"},
		{Theirs: "include includes includepattern includepatterns includeglob fileglob globpattern globfilter " +
			"filepattern filepatterns filenamepattern filemask globs pathpattern filenameglob", Ours: "glob"},
		{Theirs: notNames, Hint: "write it into glob, as !*_test.go"},
		{Theirs: "filetype filetypes language lang", Ours: "type"},
		{Theirs: "extension extensions fileextension fileextensions ext exts", Hint: "use glob, as *.py"},
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
		{Theirs: "fixedstrings fixedstring literal isliteral plaintext F fixed", Says: "false",
			Hint: "put backslashes before what the pattern has of .*+?()[]{}|^$"},
		{Theirs: "isregex useregex isregexp regexmode", Says: "true",
			Hint: "put backslashes before what the pattern has of .*+?()[]{}|^$"},
		{Theirs: "wholeword wholewords wordregexp word matchwholeword w", Says: "false", Hint: `put \b before and behind the pattern`},
		{Theirs: "recursive r R", Says: "true", Hint: "give one file as path"},
		{Theirs: hiddenName, Says: "true", Hint: "hidden files are searched"},
		{Theirs: gitNames, Says: "true", Hint: "ignored files are searched where they are given as path"},
		{Theirs: noGitNames, Says: "false", Hint: "ignored files are searched where they are given as path"},
		{Theirs: verbNames, Says: "grep search rg find", Hint: "leave it out"},
	},
	refuses: map[engine.Cause]func(*about, *Refusal){engine.BadPattern: badPattern, engine.NoFileType: unknownType},
}, runGrep)

func runGrep(ctx context.Context, s *Suite, c *engine.Call, a *GrepArgs) (Payload, error) {
	start := time.Now()
	out, err := s.search(ctx, c, a, false)
	if err != nil {
		return nil, err
	}
	if out.Total.Files+out.Total.Binary == 0 && !out.Partial {
		ctx, cancel := tries(ctx, time.Since(start))
		defer cancel()
		s.otherSearch(ctx, c, a, out)
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
	q := grep.Query{Matcher: m, Multiline: value(a.Multiline), OnlyMatching: value(a.Only), Encoding: value(a.Encoding)}
	if err := readers.CheckEncoding(q.Encoding); err != nil {
		return nil, err
	}
	p := grepPage{value(a.Offset), defaultHead, maxEntries}
	if a.HeadLimit != nil {
		p.limit = *a.HeadLimit
	}
	if p.limit <= 0 || p.limit > maxEntries {
		p.limit = maxEntries // as many as one answer holds
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
		q.Mode, out.Matches = grep.Content, []GrepMatch{}
		q.Offset, q.Limit = p.around()
		if !q.OnlyMatching {
			q.Before, q.After = contextOf(a)
		}
	case "count":
		q.Mode, out.Counts = grep.Count, []GrepCount{}
	default:
		out.Files = []string{}
	}
	err = c.Walk(ctx, root, func(ctx context.Context, w grep.Walk) error {
		w.NoIgnore = w.NoIgnore || all
		r, err := grep.Search(ctx, w, q)
		if err != nil {
			return err
		}
		out.scanned = r.Totals.Scanned
		if out.single = w.File != nil; out.single {
			out.Note = joined(s.unsearched(w.File, r), out.Note)
		}
		none := *out
		show := func(k int) string {
			*out, p.rows = none, k
			out.fill(r, q, p)
			return out.Text()
		}
		if s.page.Over(show(maxEntries)) > 0 {
			show(max(1, s.page.Fit(out.shown, show)))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// unsearched says why there is nothing to be found in a file whose content is no text.
func (s *Suite) unsearched(f grep.File, r *grep.Result) string {
	why := r.Why()
	if why == nil && len(r.Rows)+len(r.Files) == 0 {
		head := make([]byte, 16<<10)
		n, _ := f.ReadAt(head, 0) // an error was told by the search
		shown := readers.ShownAs(head[:n], "")
		switch is := readers.IsDocument(head[:n], f, f.Info().Size, true); {
		case is && !s.cfg.SearchDocuments:
			return "its text is not searched: search_documents is false; Read shows it"
		case shown != "" && !is:
			return "it is a " + shown + " and has no text to be searched; look at it with Read"
		}
		return ""
	}
	var hint readers.Hinter
	if errors.As(why, &hint) {
		return fmt.Sprintf("its text was not searched: %v. %s", why, strings.TrimSuffix(hint.Hint(), "."))
	}
	return ""
}

// contextOf gives the lines before and behind a match: an explicit -A or -B beats -C, and -C beats context.
func contextOf(a *GrepArgs) (before, after int) {
	around := cmp.Or(a.Around, a.Context)
	return min(value(cmp.Or(a.Before, around)), maxContext), min(value(cmp.Or(a.After, around)), maxContext)
}

// listNote says how a list of globs was read of which some blank may belong to a name.
func listNote(list string) string {
	globs := grep.ListGlobs(list)
	if len(globs) == len(grep.SplitGlobs(list, ",")) || !slices.ContainsFunc(globs, func(g string) bool { return !strings.ContainsAny(g, "*?[{./!") }) {
		return ""
	}
	return "glob was read as the list " + strings.Join(globs, " | ") + ", and as one name; within a " +
		"list a blank of a name is written \"\\ \""
}

// Grep is the payload of kind "grep".
type Grep struct {
	Mode    string      `json:"mode"`
	Files   []string    `json:"files,omitzero"`
	Matches []GrepMatch `json:"matches,omitzero"`
	Counts  []GrepCount `json:"counts,omitzero"`
	// ContextOnly are lines of this page around matches that are on another one.
	ContextOnly []GrepContext `json:"context_only,omitempty"`
	// Truncated: there are more rows or files, with NextOffset to go on; or a row is cut. SizeLimited:
	// one answer holds no more, whatever head_limit says.
	Truncated   bool       `json:"truncated"`
	SizeLimited bool       `json:"size_limited,omitempty"`
	NextOffset  int        `json:"next_offset,omitempty"`
	LinesCut    int        `json:"lines_cut,omitempty"` // rows that show a window of a longer line
	Total       GrepTotals `json:"total"`
	// Binary are the first of the binary files that match. No line of theirs is shown, and they are not among the files.
	Binary   []string  `json:"binary_matches,omitempty"`
	Root     string    `json:"root"`
	Partial  bool      `json:"partial,omitempty"`
	Skipped  Skipped   `json:"skipped,omitempty"`
	OddNames []string  `json:"odd_names,omitempty"` // some of the paths that are not what they seem
	Note     string    `json:"note,omitempty"`
	Next     *NextCall `json:"next,omitempty"` // nothing was found: a call that finds something

	rows    []grep.Row
	scanned int // files whose content was looked at
	shown   int // rows or files on this page
	numbers bool
	single  bool
	context bool // lines around matches were asked for
	parted  bool // the page ends within a block
}

// GrepTotals count everything that matched, shown or not.
type GrepTotals struct {
	Files   int `json:"files"`
	Rows    int `json:"rows,omitempty"` // of content, lines of context included: head_limit and offset count them
	Lines   int `json:"lines,omitempty"`
	Matches int `json:"matches,omitempty"`
	Binary  int `json:"binary,omitempty"` // binary files that match
}

// GrepMatch is one matching line. Block is the line, numbered by default, with those around
// it that were asked for.
type GrepMatch struct {
	Path  string    `json:"path"`
	Line  int       `json:"line"`
	Place string    `json:"place,omitempty"` // in a document, as "page 3"; Line is then that of all its text
	Read  *GrepRead `json:"read,omitempty"`  // the arguments of Read that show the place in a document
	Match string    `json:"match"`
	Block []string  `json:"block"`
	// BlockCut says where Block goes on upon another page: "start", "end" or "both".
	BlockCut string `json:"block_cut,omitempty"`
	// CutFrom and LineBytes say that Match is a window of a longer line.
	CutFrom   *int `json:"cut_from,omitempty"`
	LineBytes int  `json:"line_bytes,omitempty"`
}

// GrepRead has the arguments of a Read beside file_path.
type GrepRead struct {
	Pages  string `json:"pages,omitempty"`
	Offset int    `json:"offset,omitempty"`
}

func readOf(r *grep.Row) *GrepRead {
	if r.Place == nil {
		return nil
	}
	return &GrepRead{r.Place.Pages, r.Place.Offset}
}

// String is the arguments as a note says them.
func (r *GrepRead) String() string {
	switch {
	case r.Pages == "":
		return fmt.Sprintf("offset %d", r.Offset)
	case r.Offset == 0:
		return fmt.Sprintf("pages %q", r.Pages)
	}
	return fmt.Sprintf("pages %q, offset %d", r.Pages, r.Offset)
}

// placeOf stands where the number of a line stands.
func placeOf(r *grep.Row) string {
	if r.Place != nil && r.Place.Name != "" {
		return r.Place.Name
	}
	return strconv.Itoa(r.Line)
}

// GrepContext is lines in a row, from Line on.
type GrepContext struct {
	Path  string   `json:"path"`
	Line  int      `json:"line"`
	Block []string `json:"block"`
}

// GrepCount is one file of a count: matching lines, and occurrences.
type GrepCount struct {
	Path        string `json:"path"`
	Count       int    `json:"count"`
	Occurrences int    `json:"occurrences"`
}

func (g *Grep) brief() (Payload, []string) {
	out := *g
	out.Files, out.Matches, out.Counts, out.ContextOnly = nil, nil, nil, nil
	left := []string{cmp.Or(map[string]string{"content": "matches", "count": "counts"}[g.Mode], "files")}
	if g.ContextOnly != nil {
		left = append(left, "context_only")
	}
	return &out, left
}

func (*Grep) Kind() string     { return "grep" }
func (*Grep) payload()         {}
func (g *Grep) noted() *string { return &g.Note }

// Text is the answer in ripgrep's and Claude Code's shape.
func (g *Grep) Text() string {
	var b lines
	all, unit := g.Total.Files, "file"
	if g.Mode == "content" {
		all, unit = g.Total.Rows, "row"
	}
	switch {
	case g.shown == 0 && all > 0:
		fmt.Fprintf(&b, "No entries at this offset, of %s", plural(all, unit))
	case g.Mode == "content":
		g.contentText(&b)
	case g.Mode == "count":
		root := g.inRoot(&b, len(g.Counts))
		for _, c := range g.Counts {
			fmt.Fprintf(&b, "%s:%d\n", relative(root, c.Path), c.Count)
		}
		if len(g.Counts) == 0 {
			b.WriteString(noneFound("matches", g.Partial))
		} else {
			fmt.Fprintf(&b, "\nFound %s across %s.", plural(g.Total.Matches, "total occurrence"),
				plural(g.Total.Files, "file"))
		}
	default:
		if len(g.Files) == 0 {
			b.WriteString(noneFound("files", g.Partial))
		} else {
			root := ""
			if fmt.Fprintf(&b, "Found %s", plural(g.Total.Files, "file")); len(g.Files) > 1 {
				root = g.Root
				b.WriteString(" in " + root)
			}
			for _, f := range g.Files {
				b.WriteString("\n" + relative(root, f))
			}
		}
	}
	if g.NextOffset > 0 {
		fmt.Fprintf(&b, "\n[%d of %s", g.shown, plural(all, unit))
		b.add(g.SizeLimited, ", as many as one answer holds")
		b.add(g.parted, ", cut within a block")
		fmt.Fprintf(&b, "; go on with offset %d]", g.NextOffset)
	}
	if n := len(g.Binary); n > 0 {
		b.WriteString("\n[binary file matches: " + strings.Join(g.Binary, ", "))
		if more := g.Total.Binary - n; more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		}
		b.WriteString(`; where one holds text, Read with encoding: "utf-8" shows it]`)
	}
	b.add(g.Note != "", "\n[%s]", g.Note)
	return b.String() + oddText(g.OddNames) + g.Skipped.text(g.Partial, g.Total.Files > 0)
}

// inRoot begins a text with the directory that so many paths are in, and gives it: "" for a single path, which is
// named whole.
func (g *Grep) inRoot(b *lines, paths int) string {
	if paths < 2 {
		return ""
	}
	b.WriteString("In " + g.Root + ":\n")
	return g.Root
}

func (g *Grep) contentText(b *lines) {
	if len(g.rows) == 0 {
		b.WriteString(noneFound("matches", g.Partial))
		return
	}
	root := ""
	if !g.single {
		root = g.inRoot(b, len(g.rows))
	}
	for i, r := range g.rows {
		if i > 0 {
			b.WriteByte('\n')
			if p := g.rows[i-1]; g.context && (p.Path != r.Path || p.Line+1 != r.Line) {
				b.WriteString("--\n")
			}
		}
		mark := byte(':')
		if r.Context {
			mark = '-'
		}
		if !g.single {
			b.WriteString(relative(root, r.Path))
			b.WriteByte(mark)
		}
		if g.numbers {
			b.WriteString(placeOf(&g.rows[i]))
			b.WriteByte(mark)
		}
		b.WriteString(windowed(r))
	}
	if i := slices.IndexFunc(g.rows, func(r grep.Row) bool { return r.Place != nil && !r.Context }); i >= 0 {
		fmt.Fprintf(b, "\n[in a document; the first is shown by Read of %s with %s]", g.rows[i].Path, readOf(&g.rows[i]))
	}
}

// windowed gives the text of a row, marked if it shows only a window of a longer line.
func windowed(r grep.Row) string {
	if !r.Cut {
		return r.Text
	}
	return fmt.Sprintf("[… byte %d of %d] %s […]", r.From, r.Bytes, r.Text)
}

const (
	maxEntries = 50_000 // rows or files of one answer
	maxBinary  = 20     // binary files that are named
)

// grepPage is the part of the rows or files that one answer shows.
type grepPage struct {
	offset, limit int
	rows          int // that fit the caller's page
}

// around is the page with one row more on each side. Those tell whether a block goes on there.
func (p grepPage) around() (offset, limit int) {
	if p.offset == 0 {
		return 0, p.limit + 1
	}
	return p.offset - 1, p.limit + 2
}

func (g *Grep) fill(r *grep.Result, q grep.Query, p grepPage) {
	g.Root, g.Partial, g.Skipped = r.Root, r.Partial, skippedOf(r.Skipped)
	g.Total = GrepTotals{Files: r.Totals.Files, Lines: r.Totals.Lines, Matches: r.Totals.Matches, Binary: len(r.Binary)}
	g.Binary = r.Binary[:min(len(r.Binary), maxBinary)]
	if q.Mode == grep.Content {
		g.Total.Rows = r.Totals.Rows
		g.end(p, g.fillRows(r.Rows, q, p), r.Totals.Rows)
		return
	}
	const count = 40 // the numbers and the names of the fields
	g.shown = fitting(len(r.Files), maxAnswer, func(i int) int { return jsonSize(r.Files[i].Path) + count })
	g.shown = min(g.shown, p.rows)
	for _, f := range r.Files[:g.shown] {
		if q.Mode == grep.Count {
			g.Counts = append(g.Counts, GrepCount{f.Path, f.Lines, f.Matches})
		} else {
			g.Files = append(g.Files, f.Path)
		}
	}
	g.end(p, len(r.Files), r.Totals.Files)
}

// end says whether there is more than this page, and whether that is for want of room: found rows
// or files could have been on it.
func (g *Grep) end(p grepPage, found, all int) {
	g.Truncated = g.LinesCut > 0
	if p.offset+g.shown >= all || g.shown == 0 {
		return
	}
	g.Truncated, g.NextOffset = true, p.offset+g.shown
	g.SizeLimited = g.shown < found || g.shown == maxEntries
}

// fillRows turns rows into Moltis' matches: one a matching line, with the lines around it as its
// block. Lines of context whose match is on another page are listed apart. It says how many rows
// the page could have had.
func (g *Grep) fillRows(rows []grep.Row, q grep.Query, p grepPage) (found int) {
	g.context = q.Before > 0 || q.After > 0
	before := rows[:min(1, p.offset, len(rows))] // the row before the page
	rows = rows[len(before):]
	found = min(len(rows), p.limit)
	g.shown = fitting(found, maxAnswer, g.rowCost(rows, q))
	g.shown = min(g.shown, p.rows)
	g.rows = rows[:g.shown]
	behind := rows[g.shown:]
	if n := g.shown; g.context && n > 0 && len(behind) > 0 {
		g.parted = behind[0].Path == rows[n-1].Path && behind[0].Line == rows[n-1].Line+1
	}
	inBlock := make([]bool, g.shown)
	for i, r := range g.rows {
		if r.Cut {
			g.LinesCut++
		}
		if r.Context {
			continue
		}
		m := GrepMatch{Path: r.Path, Line: r.Line, Match: r.Text, Read: readOf(&r)}
		if r.Place != nil {
			m.Place = r.Place.Name
		}
		if r.Cut {
			m.CutFrom, m.LineBytes = &r.From, r.Bytes
		}
		if !g.context {
			m.Block = g.lines(i, i+1)
		} else {
			from, to := i, i+1
			for from > 0 && around(g.rows[from-1], r, q) {
				from--
			}
			for to < g.shown && around(g.rows[to], r, q) {
				to++
			}
			m.Block = g.lines(from, to)
			for k := from; k < to; k++ {
				inBlock[k] = true
			}
			atStart := from == 0 && len(before) > 0 && around(before[0], r, q)
			atEnd := to == g.shown && len(behind) > 0 && around(behind[0], r, q)
			switch {
			case atStart && atEnd:
				m.BlockCut = "both"
			case atStart:
				m.BlockCut = "start"
			case atEnd:
				m.BlockCut = "end"
			}
		}
		g.Matches = append(g.Matches, m)
	}
	for i := 0; g.context && i < g.shown; i++ {
		if inBlock[i] {
			continue
		}
		from := i
		for i+1 < g.shown && !inBlock[i+1] && g.rows[i+1].Path == g.rows[i].Path &&
			g.rows[i+1].Line == g.rows[i].Line+1 {
			i++
		}
		g.ContextOnly = append(g.ContextOnly, GrepContext{g.rows[from].Path, g.rows[from].Line,
			g.lines(from, i+1)})
	}
	return found
}

// around says whether row x belongs to the block of the match m.
func around(x, m grep.Row, q grep.Query) bool {
	return x.Path == m.Path && x.Line >= m.Line-q.Before && x.Line <= m.Line+q.After
}

// lines are rows as they stand in a block.
func (g *Grep) lines(from, to int) []string {
	out := make([]string, 0, to-from)
	for _, r := range g.rows[from:to] {
		line := windowed(r)
		if g.numbers {
			line = placeOf(&r) + ":" + line
		}
		out = append(out, line)
	}
	return out
}

// rowCost gives what each row adds to an answer that ends with it. A match adds itself with the
// lines before it, and again in the block of each match before it.
func (g *Grep) rowCost(rows []grep.Row, q grep.Query) func(i int) int {
	const each = 40 // the names of the fields
	if !g.context {
		return func(i int) int {
			return jsonSize(rows[i].Path) + 2*jsonSize(rows[i].Text) + 2*each + 4*placeCost(&rows[i])
		}
	}
	first, above := 0, 0    // the block before row i begins at first, and takes above
	oldest, matches := 0, 0 // of the matches from oldest on, so many have row i in their blocks
	return func(i int) int {
		r := rows[i]
		size := jsonSize(r.Text) + 8 + 3*placeCost(&r)
		for ; first < i && !around(rows[first], r, grep.Query{Before: q.Before}); first++ {
			above -= jsonSize(rows[first].Text) + 8 + 3*placeCost(&rows[first])
		}
		for ; oldest < i && !around(r, rows[oldest], grep.Query{After: q.After}); oldest++ {
			if !rows[oldest].Context {
				matches--
			}
		}
		cost := size * matches
		if above += size; !r.Context {
			cost += jsonSize(r.Path) + size + above + each
			matches++
		} else {
			cost += size
		}
		return cost
	}
}

// placeCost is about what the place of a row takes in JSON, once.
func placeCost(r *grep.Row) int {
	if r.Place == nil {
		return 0
	}
	return jsonSize(r.Place.Name) + 20
}

// badPattern says where a regular expression goes wrong, and the one to use instead.
func badPattern(a *about, r *Refusal) {
	e := factsOf[*match.PatternError](a)
	r.Fields = struct {
		Offset  int    `json:"pattern_offset"`
		Suggest string `json:"suggested_pattern,omitempty"`
	}{e.Offset, e.Suggest}
	if !e.Multiline {
		r.fill(a, e.Suggest)
		return
	}
	more := map[string]any{"multiline": true}
	if e.Suggest != "" {
		more["pattern"] = e.Suggest
	}
	r.Next = again(a.tool, a.args, more)
}

// fill offers the pattern that finds something.
func (r *Refusal) fill(a *about, suggest string) {
	found, hits := a.otherPattern(suggest)
	sent, _ := a.args.(*GrepArgs)
	switch {
	case found != nil:
		b := *sent
		withPattern(&b, *found)
		r.Next = again(a.tool, &b, nil)
		as := "use"
		if found.Text == regexp.QuoteMeta(sent.Pattern) {
			as = "for the literal text use"
		} else if found.As != "" {
			as = "as " + found.As + " use"
		}
		r.Hint = refusal.Sentence(fmt.Sprintf("%s `%s`%s (%s)", as, found.Text, flagged(*found), hits))
	case suggest == "":
	case suggest == regexp.QuoteMeta(sent.Pattern):
		r.Hint = "For the literal text use `" + suggest + "`; a quick search does not find it."
	default:
		r.Hint = "Did you mean `" + suggest + "`? A quick search does not find that."
	}
}

// unknownType offers the nearest type.
func unknownType(a *about, r *Refusal) {
	e := factsOf[*grep.TypeError](a)
	if sent, _ := asMap(a.args)["type"].(string); len(e.Nearest) > 0 {
		r.Next = again(a.tool, a.args, map[string]any{"type": strings.Replace(sent, e.Type, e.Nearest[0], 1)})
	}
}

// otherSearch looks for a call that finds something where a found nothing, and puts it into out.
func (s *Suite) otherSearch(ctx context.Context, c *engine.Call, a *GrepArgs, out *Grep) {
	plain := *a
	plain.Offset, plain.HeadLimit = nil, nil
	try := func(as string, change func(*GrepArgs)) bool {
		b := plain
		if change(&b); ctx.Err() != nil {
			return false
		}
		r, err := s.search(ctx, c, &b, false)
		if err != nil || r.Total.Files == 0 {
			return false
		}
		sent := *a
		change(&sent)
		sent.Offset = nil
		out.Next = again("Grep", &sent, nil)
		out.Note = joined(fmt.Sprintf("%s: %s", as, r.howMany()), out.Note)
		return true
	}
	if g := value(a.Glob); out.scanned == 0 && g != "" {
		with := func(glob string) bool {
			return try("glob "+glob, func(b *GrepArgs) { b.Glob = &glob })
		}
		for _, other := range append(alternatives.Globs(g), "**/"+g) {
			if with(other) {
				if rival := alternatives.Rival(g, other); rival != "" && with(rival) {
					out.Next = nil // which of the two is meant can't be told
				}
				return
			}
		}
	}
	for _, r := range alternatives.Patterns(a.Pattern, value(a.IgnoreCase), value(a.Multiline)) {
		as := "as " + r.As + ", pattern " + r.Text + flagged(r)
		if try(as, func(b *GrepArgs) { withPattern(b, r) }) {
			return
		}
	}
	if s.ignoredToo(ctx, c, &plain, out) {
		return
	}
	if g := value(a.Glob); g+value(a.Type) != "" && !strings.Contains(g, "!") {
		try("without glob and type", func(b *GrepArgs) { b.Glob, b.Type = nil, nil })
		out.Next = nil // other files were not asked for
	}
}

func flagged(r alternatives.Pattern) (out string) {
	if r.IgnoreCase {
		out += " with -i"
	}
	if r.Multiline {
		out += " with multiline"
	}
	return out
}

func withPattern(a *GrepArgs, r alternatives.Pattern) {
	yes := true
	if a.Pattern = r.Text; r.IgnoreCase {
		a.IgnoreCase = &yes
	}
	if r.Multiline {
		a.Multiline = &yes
	}
}

// howMany counts the hits of a search in words, as "3 lines in 2 files".
func (g *Grep) howMany() string {
	n := plural(g.Total.Files, "file")
	if g.Mode == "content" && g.Total.Lines > 0 {
		n = plural(g.Total.Lines, "line") + " in " + n
	}
	if g.Partial {
		return "at least " + n
	}
	return n
}

// ignoredToo searches the files that ignore rules keep out, and offers the call that finds something there.
func (s *Suite) ignoredToo(ctx context.Context, c *engine.Call, a *GrepArgs, out *Grep) bool {
	if out.Skipped["ignored"].Count == 0 || ctx.Err() != nil {
		return false
	}
	all := *a
	mode := "files_with_matches"
	all.OutputMode = &mode
	r, err := s.search(ctx, c, &all, true)
	if err != nil || len(r.Files) == 0 {
		return false
	}
	for _, in := range []string{commonDir(r.Files), r.Files[0]} {
		b := *a
		if b.Path = &in; in == r.Root {
			continue
		}
		if hit, err := s.search(ctx, c, &b, false); err == nil && hit.Total.Files > 0 {
			out.Next = again("Grep", &b, nil)
			out.Note = joined(fmt.Sprintf("it is in %s that ignore rules leave out, path %s",
				plural(r.Total.Files, "file"), in), out.Note)
			return true
		}
	}
	return false
}

// otherPattern is the pattern that finds something in place of one that is no regular expression.
func (a *about) otherPattern(suggest string) (r *alternatives.Pattern, hits string) {
	args, ok := a.args.(*GrepArgs)
	if !ok || a.call == nil {
		return nil, ""
	}
	ctx, cancel := tries(context.Background(), 0)
	defer cancel()
	all := alternatives.Patterns(args.Pattern, value(args.IgnoreCase), value(args.Multiline))
	if suggest != "" { // behind the literal text: a reading of the whole comes before one of a part
		at := slices.IndexFunc(all, func(r alternatives.Pattern) bool { return r.As == "literal text" })
		all = slices.Insert(all, at+1, alternatives.Pattern{Text: suggest})
	}
	for _, r := range all {
		b := *args
		withPattern(&b, r)
		b.Offset = nil
		if found, err := a.s.search(ctx, a.call, &b, false); err == nil && found.Total.Files > 0 {
			return &r, found.howMany()
		}
	}
	return nil, ""
}
