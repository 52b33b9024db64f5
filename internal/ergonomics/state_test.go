package ergonomics

import (
	"maps"
	"strings"
	"testing"
)

// stateful are cases in which the text is right, and the file, or the order of things, is not what
// the model takes it for.
func stateful(sources []source, each int) (out []Case) {
	for _, k := range []struct {
		name string
		of   func(it intent, c Case) (Case, bool)
	}{
		{"not read", func(it intent, c Case) (Case, bool) { c.Read = nil; return c, true }},
		{"already applied", func(it intent, c Case) (Case, bool) {
			c.Files = c.Want
			c.Refuse, c.Want = true, nil
			return c, strings.Contains(it.new, strings.TrimSpace(it.old)) == false
		}},
		{"others changed another part", func(it intent, c Case) (Case, bool) {
			c.Outside = map[string]string{it.name: it.text + "\nadded by others\n"}
			c.Want = map[string]string{it.name: c.Want[it.name] + "\nadded by others\n"}
			return c, true
		}},
		{"others changed this part", func(it intent, c Case) (Case, bool) {
			c.Outside = map[string]string{it.name: strings.Replace(it.text, it.old, "gone", 1)}
			c.Refuse, c.Want = true, nil
			return c, true
		}},
		{"the copy has become unique", func(it intent, c Case) (Case, bool) {
			c.Files = map[string]string{it.name: it.text + "\n" + it.old + "\n"}
			c.Outside = map[string]string{it.name: strings.Replace(it.text, it.old, "gone", 1) + "\n" + it.old + "\n"}
			c.Refuse, c.Want = true, nil
			return c, true
		}},
		{"twice in the file", func(it intent, c Case) (Case, bool) {
			c.Files = map[string]string{it.name: it.text + "\n" + it.old + "\n"}
			c.Want = map[string]string{it.name: c.Want[it.name] + "\n" + it.old + "\n"}
			return c, true
		}},
		{"of a file that was never there", func(it intent, c Case) (Case, bool) {
			c.Args["old_string"] = "the quick brown fox\njumps over the lazy dog"
			c.Refuse, c.Want = true, nil
			return c, true
		}},
		{"another number is meant", func(it intent, c Case) (Case, bool) {
			old := strings.NewReplacer("1", "7", "2", "8", "0", "5").Replace(it.old)
			new := strings.NewReplacer("1", "7", "2", "8", "0", "5").Replace(it.new)
			c.Args["old_string"], c.Args["new_string"] = old, new
			c.Refuse, c.Want = true, nil
			return c, old != it.old && !strings.Contains(it.text, old)
		}},
	} {
		out = append(out, varied("G state", k.name, sources, each, k.of)...)
	}
	return out
}

// encoded are edits of files in other charsets and with other line ends, and slips in them.
func encoded(sources []source, each int) (out []Case) {
	crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	out = append(out, varied("H encodings", "CRLF", sources, each, func(it intent, c Case) (Case, bool) {
		c.Files = map[string]string{it.name: crlf(it.text)}
		c.Want = map[string]string{it.name: crlf(c.Want[it.name])}
		return c, true
	})...)
	out = append(out, varied("H encodings", "CRLF, and a letter lost", sources, each, func(it intent, c Case) (Case, bool) {
		lost := onceIn(func(w string) string { return w[:3] + w[4:] })
		c.Args["old_string"], c.Args["new_string"] = lost(it, it.old), lost(it, it.new)
		c.Files = map[string]string{it.name: crlf(it.text)}
		c.Want = map[string]string{it.name: crlf(c.Want[it.name])}
		return c, lost(it, it.old) != it.old
	})...)
	utf16 := func(s string) string {
		var b strings.Builder
		b.WriteString("\xff\xfe")
		for _, r := range s {
			b.WriteByte(byte(r))
			b.WriteByte(byte(r >> 8))
		}
		return b.String()
	}
	out = append(out, varied("H encodings", "UTF-16, and numbers", sources, each, func(it intent, c Case) (Case, bool) {
		f := numbered("%6d→", 0)
		c.Args["old_string"], c.Args["new_string"] = f(it, it.old), f(it, it.new)
		c.Files = map[string]string{it.name: utf16(it.text)}
		c.Want = map[string]string{it.name: utf16(c.Want[it.name])}
		return c, len(it.text) < 20000
	})...)
	out = append(out, varied("H encodings", "a sign that latin1 has not", sources, each, func(it intent, c Case) (Case, bool) {
		c.Files = map[string]string{it.name: "caf\xe9 na\xefve d\xe9j\xe0 vu\n" + it.text}
		c.Args["new_string"] = it.new + " 漢"
		c.Refuse, c.Want = true, nil
		return c, true
	})...)
	return out
}

// several edits in one call, of which one has a slip.
func inSeveral(sources []source, each int) (out []Case) {
	for _, name := range []string{"arrow", "one letter lost", "tabs as 4 spaces", "quotes escaped", "entities", "code fence"} {
		for _, sl := range slips {
			if sl.name != name {
				continue
			}
			out = append(out, varied("I MultiEdit", name+" in one of three", sources, each, func(it intent, c Case) (Case, bool) {
				one, ok := sl.makes(it)
				first, last := strings.Split(it.text, "\n")[0], "the end of it"
				if !ok || strings.Count(it.text, first) != 1 || len(first) < 8 || it.line < 3 || sl.want != nil && !sl.want(strings.Split(it.old, "\n")) {
					return c, false
				}
				text := it.text + last + "\n"
				c.Files = map[string]string{it.name: text}
				c.Tool = "MultiEdit"
				c.Args = map[string]any{"file_path": "{root}/" + it.name, "edits": []any{
					map[string]any{"old_string": first, "new_string": first + " //"},
					map[string]any{"old_string": one.Args["old_string"], "new_string": one.Args["new_string"]},
					map[string]any{"old_string": last, "new_string": "the very end"}}}
				want := strings.Replace(text, first, first+" //", 1)
				want = strings.Replace(want, it.old, it.new, 1)
				c.Want = map[string]string{it.name: strings.Replace(want, last, "the very end", 1)}
				return c, strings.Contains(want, last)
			})...)
		}
	}
	return out
}

// written are slips of Write.
func written(sources []source, each int) (out []Case) {
	for _, k := range []struct {
		name string
		of   func(it intent, c Case) (Case, bool)
	}{
		{"not read", func(it intent, c Case) (Case, bool) { c.Read = nil; return c, true }},
		{"the middle elided", func(it intent, c Case) (Case, bool) {
			ls := strings.Split(it.text, "\n")
			c.Args["content"] = strings.Join(ls[:5], "\n") + "\n# ... rest of the file unchanged ...\n"
			c.Refuse, c.Want = true, nil
			return c, len(ls) > 20
		}},
		{"emptied", func(it intent, c Case) (Case, bool) {
			c.Args["content"] = ""
			c.Refuse, c.Want = true, nil
			return c, true
		}},
	} {
		out = append(out, varied("N Write", k.name, sources, each, func(it intent, c Case) (Case, bool) {
			c.Tool, c.Args = "Write", map[string]any{"file_path": "{root}/" + it.name, "content": c.Want[it.name]}
			return k.of(it, c)
		})...)
	}
	return out
}

// varied are so many cases of a kind, each an edit as it is meant before of changes it.
func varied(category, name string, sources []source, each int, of func(intent, Case) (Case, bool)) (out []Case) {
	r := seeded(category + name)
	for _, i := range r.Perm(len(sources)) {
		for _, it := range intents(sources[i], r, 3, nil) {
			c := it.edit(category, name, it.old, it.new)
			c.Files = maps.Clone(c.Files)
			if c, ok := of(it, c); ok && len(out) < each {
				out = append(out, c)
			}
		}
	}
	return out
}

// TestIntents: the edits as they are meant are done at once.
func TestIntents(t *testing.T) {
	cases := varied("", "as meant", allSources(t), 20, func(_ intent, c Case) (Case, bool) { return c, true })
	for i, r := range run(t, cases, openInside(t, "tolerant")) {
		if r.Outcome != First {
			t.Errorf("%s: %s", rendered(cases[i].Args), r.Outcome)
		}
	}
}
