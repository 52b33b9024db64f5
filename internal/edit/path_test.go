package edit

import "testing"

func TestShownPathStaysInItsLine(t *testing.T) {
	for name, want := range map[string]string{
		"/w/a b": "/w/a b", "/w/ü\\": "/w/ü\\", `C:\x`: `C:\x`, "": "",
		"/w/\x1b[31mred\nforged": `"/w/\x1b[31mred\nforged"`, "/w/\u202ex": `"/w/\u202ex"`, "/w/\u009bx": `"/w/\u009bx"`, "/w/\xff": `"/w/\xff"`, `"/w/\n"`: `"\"/w/\\n\""`,
	} {
		if got := ShownPath(name); got != want {
			t.Errorf("%q is shown as %s, not %s", name, got, want)
		}
	}
}
