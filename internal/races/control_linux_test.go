package races

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mistakes are operations that look at a name and then use the name again. Each reaches a victim in time; else
// the race proves nothing. Each gives the text that it read.
var mistakes = map[string]func(a *arena) string{
	"read":   func(a *arena) string { return a.get("d/f") },
	"write":  func(a *arena) string { return a.put("d/f") },
	"copy":   func(a *arena) string { return a.get("d/f") + a.put("b") },
	"onto":   func(a *arena) string { return a.get("a") + a.put("d/f") },
	"delete": func(a *arena) string { return a.looked("d/f", os.Remove) },
	"move":   func(a *arena) string { return a.looked("d/f", func(p string) error { return os.Rename(p, a.ws("b")) }) },
	"search": func(a *arena) string { return a.tree("d", func(string) error { return nil }) },

	"copy tree":    func(a *arena) string { return a.tree("t", func(string) error { return nil }) },
	"delete tree":  func(a *arena) string { return a.tree("t", os.Remove) },
	"restore tree": func(a *arena) string { return a.put("t/sub/f") },
}

// looked looks where a name leads and, if that is allowed, does something to the name.
func (a *arena) looked(name string, do func(string) error) string {
	p, err := filepath.EvalSymlinks(a.ws(name))
	if err != nil || !strings.HasPrefix(p, a.dir+"/ws/") || strings.HasPrefix(p, a.ws("secret")) {
		return ""
	}
	i, err := os.Stat(p)
	v, _ := os.Stat(a.ws("secret/f"))
	if err == nil && !os.SameFile(i, v) {
		_ = do(a.ws(name))
	}
	return ""
}

func (a *arena) get(name string) (got string) {
	a.looked(name, func(p string) error {
		b, err := os.ReadFile(p)
		got = string(b)
		return err
	})
	return got
}

func (a *arena) put(name string) string {
	return a.looked(name, func(p string) error {
		f, err := os.OpenFile(p, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString(ours)
		return err
	})
}

// tree lists a directory, then reads what it listed, then does something to it.
func (a *arena) tree(dir string, do func(string) error) string {
	var got bytes.Buffer
	a.looked(dir, func(p string) error {
		var files []string
		_ = filepath.WalkDir(p, func(name string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				files = append(files, name)
			}
			return nil
		})
		for _, f := range files {
			b, _ := os.ReadFile(f)
			got.Write(b)
			_ = do(f)
		}
		return nil
	})
	return got.String()
}

// falls tries a mistake until it comes to a victim, and says at which try that was.
func (a *arena) falls(t *testing.T, mistake string) int {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for n := 1; time.Now().Before(end); n++ {
		if n%8 == 1 {
			a.quietly(func() { a.mend(t) })
		}
		if got := mistakes[mistake](a); strings.Contains(got, victim) || a.harmed() != "" {
			a.quietly(func() {
				a.layVictims(t)
				a.sweep(t)
			})
			return n
		}
	}
	t.Errorf("%s: the control (%s) survived: either the attack is none, or this machine does not let it run", a.race.name, mistake)
	return 0
}
