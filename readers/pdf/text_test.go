package pdf

import (
	"fmt"
	"strings"
	"testing"
)

func TestCleanPageText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                            "",
		" \r\n\r\n":                   "",
		"one\r\ntwo\rthree\n":         "one\ntwo\nthree",
		"one  \n\t\n\n\n two \u00a0x": "one\n\n two  x",
		"soft\x00 \ufffehidden\x7f":   "soft hidden",
		"a\tb":                        "a\tb",
		"break\x02ing words":          "breaking words",
		"Jean\x02Luc":                 "Jean-Luc",
		"1\x022":                      "1-2",
		"at the end\x02":              "at the end-",
		"\x02begins":                  "begins",
		"naï\x02veté":                 "naïveté",
	} {
		if got := cleanPageText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestAnnotationsInWords(t *testing.T) {
	t.Parallel()
	var empty []formField
	for i := range emptyFields + 1 {
		empty = append(empty, formField{name: fmt.Sprint("e", i)})
	}
	for name, c := range map[string]struct {
		a    annotations
		want string
	}{
		"none":      {annotations{}, ""},
		"a field":   {annotations{fields: []formField{{"name", "", "Ada\nLovelace"}}}, "[form] name: Ada\n    Lovelace"},
		"tips":      {annotations{fields: []formField{{"f1", "your name", "Ada"}, {"f2", "f2", "x"}}}, "[form] f1 (your name): Ada\n[form] f2: x"},
		"empty":     {annotations{fields: []formField{{"a", "", ""}, {"b", "tip", ""}}}, "[form] empty or not checked: a, b (tip)"},
		"notes":     {annotations{fields: []formField{{"a", "", "1"}}, notes: []string{"[annotation] seen"}}, "[form] a: 1\n[annotation] seen"},
		"mute":      {annotations{mute: 3}, "[annotation] without text: 3"},
		"unread":    {annotations{unread: 3}, "[annotation] not read: 3 of the form fields and annotations of this page"},
		"too many":  {annotations{fields: empty}, fmt.Sprintf("e%d, and 1 more", emptyFields-1)},
		"cut there": {annotations{fields: empty[:emptyFields]}, fmt.Sprintf("e%d", emptyFields-1)},
	} {
		got := c.a.String()
		if ok := got == c.want || len(c.a.fields) >= emptyFields && strings.HasSuffix(got, c.want); !ok {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
