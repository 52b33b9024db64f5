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

// shown is the pattern with the flags that matter.
func (r row) shown() string {
	pattern := r.pattern
	if r.multiline {
		pattern = "-U " + pattern
	}
	if r.fold {
		pattern = "-i " + pattern
	}
	return pattern
}

func p(tree, pattern string, g goal, held bool) row {
	return row{tree: tree, task: task{pattern: pattern}, goal: g, held: held}
}

func (r row) ignoringCase() row { r.fold = true; return r }
func (r row) acrossLines() row  { r.multiline = true; return r }
func (r row) counting() row     { r.mode = grep.Count; return r }

// rows are searches for 40 patterns. The engine was tuned on the first half of each tree's; the held ones were chosen when it was done.
var rows = []row{
	p("linux", "nanosleep_restart_zz", goalLiteral, false),
	p("linux", "return", goalLiteral, false),
	p("linux", "spin_lock_irqsave", goalLiteral, false).ignoringCase(),
	p("linux", `fn\s+main`, goalLiteral, false),
	p("linux", `\w+_alloc\(`, goalLiteral, false),
	p("linux", `[A-Z]+_SUSPEND`, goalLiteral, false),
	p("linux", `//\s*[a-z]+ing\b`, goalLiteral, false),
	p("linux", `0x[0-9a-f]{12,}`, goalLiteral, false),
	p("linux", "devm_kzalloc|nla_put_u32|rcu_barrier|idr_preload|skb_clone", goalAlternate, false),
	p("linux", "mutex_(un)?lock|down_(read|write)", goalAlternate, false),
	p("linux", `[A-Z]{6}[0-9]{4}[a-z]`, goalClass, false),
	p("linux", `spin_lock\([^)]*\);\n\s*return`, goalMultiline, false).acrossLines(),

	p("linux", "device_unregister", goalLiteral, true),
	p("linux", "firmware", goalLiteral, true).ignoringCase(),
	p("linux", "out of memory", goalLiteral, true).ignoringCase(),
	p("linux", `static int __init \w+_init\(void\)`, goalLiteral, true),
	p("linux", `#include <linux/\w+_types\.h>$`, goalLiteral, true),
	p("linux", `\bATOMIC_\w+\(0\)`, goalLiteral, true),
	p("linux", "kmemdup|kstrdup|kasprintf", goalAlternate, true),
	p("linux", `(get|put)_(user|page|device)\b`, goalAlternate, true),
	p("linux", "BUG_ON|WARN_ON|panic", goalAlternate, true),
	p("linux", `[a-z]{4}[0-9]{2}[A-Z]{2}`, goalClass, true),
	p("linux", `[A-Z]{2}[a-z]{2}[A-Z]{2}[0-9]`, goalClass, true),
	p("linux", `unsigned long flags;\n\s+int ret`, goalMultiline, true).acrossLines(),
	p("linux", `\.name\s*=\s*"[a-z]+",\n\s*\.id`, goalMultiline, true).acrossLines(),

	p("go", "WaitGroup", goalAny, false),
	p("go", `fmt\.Errorf\("[^"]*%w`, goalAny, true),
	p("nm", "useLayoutEffect", goalAny, false),
	p("nm", `export default (class|function)`, goalAny, true),
	p("synth", "offset limit page", goalAny, false),
	p("synth", `cache\s+parse\s+render`, goalAny, true),

	p("log", "the needle", goalBig, false).counting(),
	p("log", "ERROR", goalBig, false).counting(),
	p("log", `worker-1\d.*timeout`, goalBig, false).counting(),
	p("log", "retry token|select cache", goalBig, false).counting(),
	p("log", "timeout|retry|connect|session", goalBig, false).counting(),
	p("log", `worker-(7|42)\]`, goalBig, true).counting(),
	p("log", `ERROR.*dur=49\d\d`, goalBig, true).counting(),
	p("log", "update|delete|insert", goalBig, true).counting(),
	p("log", `T2[23]:\d\d:\d\d\.9`, goalBig, true).counting(),
}
