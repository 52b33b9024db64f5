package main

import "moltisfs/grep"

// goal is a bound on our time as a ratio to the best ripgrep's.
type goal float64

const (
	goalWalk      goal = 0.4
	goalLiteral   goal = 0.8
	goalAlternate goal = 0.95
	goalClass     goal = 0.6
	goalMultiline goal = 1.0
	goalBig       goal = 1.0
	goalAny       goal = 1.1
)

// row is one pattern that all arms search for.
type row struct {
	tree string
	task
	goal goal
	held bool // chosen after the engine was tuned
}

func (r row) flags() []string {
	var f []string
	if r.fold {
		f = append(f, "-i")
	}
	if r.multiline {
		f = append(f, "-U")
	}
	switch r.mode {
	case grep.Count:
		f = append(f, "-c")
	default:
		f = append(f, "-l")
	}
	return append(f, r.pattern)
}

func p(tree, pattern string, g goal, held bool) row {
	return row{tree: tree, task: task{pattern: pattern}, goal: g, held: held}
}

func (r row) ignoringCase() row { r.fold = true; return r }
func (r row) acrossLines() row  { r.multiline = true; return r }
func (r row) counting() row     { r.mode = grep.Count; return r }

// rows are 36 searches; half of those on the Linux tree were chosen when the engine was done.
var rows = []row{
	p("linux", "nanosleep_restart_zz", goalLiteral, false),
	p("linux", "return", goalLiteral, false),
	p("linux", "spin_lock_irqsave", goalLiteral, false).ignoringCase(),
	p("linux", `fn\s+main`, goalLiteral, false),
	p("linux", `\w+_alloc\(`, goalLiteral, false),
	p("linux", "devm_kzalloc|nla_put_u32|rcu_barrier|idr_preload|skb_clone", goalAlternate, false),
	p("linux", `[A-Z]+_SUSPEND`, goalLiteral, false),
	p("linux", `[A-Z]{6}[0-9]{4}[a-z]`, goalClass, false),
	p("linux", `straße|größe`, goalAlternate, false).ignoringCase(),
	p("linux", `#define\s+[A-Z_]+_MAX\b`, goalLiteral, false),
	p("linux", `[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+`, goalClass, false),
	p("linux", `\bkfree\b`, goalLiteral, false),
	p("linux", `//\s*[a-z]+ing\b`, goalLiteral, false),
	p("linux", `spin_lock\([^)]*\);\n\s*return`, goalMultiline, false).acrossLines(),

	p("linux", "page_mapcount", goalLiteral, true),
	p("linux", "copyright", goalLiteral, true).ignoringCase(),
	p("linux", `\bu64\s+\w+;`, goalLiteral, true),
	p("linux", `struct \w+ \*\w+ = container_of`, goalLiteral, true),
	p("linux", `static const char \* const \w+\[\]`, goalLiteral, true),
	p("linux", "deprecated|obsolete|legacy", goalAlternate, true),
	p("linux", "mutex_(un)?lock|down_(read|write)", goalAlternate, true),
	p("linux", `^\s*goto [a-z_]+;$`, goalLiteral, true),
	p("linux", `0x[0-9a-f]{12,}`, goalLiteral, true),
	p("linux", `[a-z]+[0-9]{3}_[a-z]{5}[0-9]`, goalClass, true),
	p("linux", `\b[A-Z][a-z]+ [A-Z][a-z]+son\b`, goalLiteral, true),
	p("linux", `EXPORT_SYMBOL(_GPL)?\(\w+\)`, goalLiteral, true),
	p("linux", `if \(ret < 0\)\s*\n\s*goto`, goalMultiline, true).acrossLines(),
	p("linux", `/\*[^*]*FIXME[^*]*\*/`, goalMultiline, true).acrossLines(),

	p("go", "WaitGroup", goalAny, false),
	p("go", `func \(\w+ \*\w+\) \w+Lock\(`, goalAny, true),
	p("nm", "useLayoutEffect", goalAny, false),
	p("nm", `require\(['"]\w+['"]\)`, goalAny, true),
	p("synth", "offset limit page", goalAny, false),
	p("synth", `timeout\s\w+\sretry`, goalAny, true),

	p("log", "the needle", goalBig, false).counting(),
	p("log", "ERROR", goalBig, false).counting(),
	p("log", `id=[0-9a-f]{14}ff dur=9{3}`, goalBig, false).counting(),
	p("log", `worker-1\d.*timeout`, goalBig, true).counting(),
	p("log", "retry token|select cache", goalBig, true).counting(),
	p("log", `T0[0-3]:\d\d:59\.`, goalBig, true).counting(),
}
