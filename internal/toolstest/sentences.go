package toolstest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// said is what a refusal says in prose.
type said struct{ message, hint string }

// A sentences knows each prose that a refusal of the golden calls may have, and the cause of it.
// It is the file sentences.golden beside the cases, the only place that pins prose: in the section
// want of a case, $cause stands for the message and the hint.
type sentences struct {
	path   string
	causes map[said]string
	mu     sync.Mutex      // of what follows
	met    map[said]string // in this run
}

func loadSentences(t *testing.T, dir string) *sentences {
	t.Helper()
	s := &sentences{path: filepath.Join(dir, "sentences.golden"), causes: map[said]string{}, met: map[said]string{}}
	text, err := os.ReadFile(s.path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	cause, message := "", ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "    "):
			s.causes[said{message, line[4:]}] = cause
		case strings.HasPrefix(line, "  "):
			message = line[2:]
		default:
			cause = line
		}
	}
	return s
}

// proseOfRefusal is what stands in an indented payload.
var proseOfRefusal = regexp.MustCompile(`(?m)^  "error": (".*"),\n  "hint": (".*")(,?)$`)

// hide puts the cause in the place of the prose, in a payload and in its text, as want has them. The carrier may not
// know the cause. Prose that the file does not have, or not for this cause, stays as it is, so that
// the difference shows it.
func (s *sentences) hide(t *testing.T, payload, text, cause string) (string, string) {
	t.Helper()
	m := proseOfRefusal.FindStringSubmatch(payload)
	if m == nil {
		return payload, text
	}
	key := said{m[1], m[2]}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.causes[key]
	if *update && cause != "" {
		if other := cmp.Or(s.met[key], cause); other != cause {
			t.Errorf("%s and %s say the same: %s", other, cause, key.message)
		}
		known = cause
	}
	if known == "" || cause != "" && cause != known {
		return payload, text
	}
	s.met[key] = known
	payload = strings.Replace(payload, m[0], fmt.Sprintf(`  "error": "$%s"%s`, known, m[3]), 1)
	return payload, strings.Replace(text, unquote(t, m[1])+"\n"+unquote(t, m[2]), "$"+known, 1)
}

func unquote(t *testing.T, s string) (out string) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &out); err != nil {
		t.Fatalf("%v in %s", err, strconv.Quote(s))
	}
	return out
}

// finish rewrites the file with -update. After a run of all cases, what no call says any more is
// a failure, and goes with -update.
func (s *sentences) finish(t *testing.T, all bool) {
	t.Helper()
	if !*update {
		for key, cause := range s.causes {
			if all && s.met[key] == "" {
				t.Errorf("no call is refused like this any more: %s: %s", cause, key.message)
			}
		}
		return
	}
	if !all {
		for key, cause := range s.causes {
			s.met[key] = cmp.Or(s.met[key], cause)
		}
	}
	keys := slices.SortedFunc(maps.Keys(s.met), func(a, b said) int {
		return cmp.Or(cmp.Compare(s.met[a], s.met[b]), cmp.Compare(a.message, b.message), cmp.Compare(a.hint, b.hint))
	})
	var b strings.Builder
	for i, key := range keys {
		newCause := i == 0 || s.met[key] != s.met[keys[i-1]]
		if newCause {
			fmt.Fprintln(&b, s.met[key])
		}
		if newCause || key.message != keys[i-1].message {
			fmt.Fprintf(&b, "  %s\n", key.message)
		}
		fmt.Fprintf(&b, "    %s\n", key.hint)
	}
	if err := os.WriteFile(s.path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
