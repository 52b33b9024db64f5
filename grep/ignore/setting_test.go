package ignore

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// settings reads a configuration as "git config --list --null" prints it.
func settings(data []byte) (out []string, ok bool) {
	ok = eachSetting(data, func(section, key, value string) {
		if section != "" {
			section += "."
		}
		out = append(out, section+key+"\n"+value)
	})
	return out, ok
}

func gitSettings(t testing.TB, data []byte) (out []string, ok bool) {
	f := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(f, data, 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("git", "config", "--file", f, "--no-includes", "--list", "--null")
	c.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	raw, err := c.Output()
	for s := range bytes.SplitSeq(bytes.TrimSuffix(raw, []byte{0}), []byte{0}) {
		if len(raw) == 0 {
			break
		}
		if !bytes.Contains(s, []byte{'\n'}) {
			s = append(slices.Clone(s), "\ntrue"...) // a key without a value
		}
		out = append(out, string(s))
	}
	return out, err == nil
}

// FuzzSettings compares the reading of configuration files with git's.
func FuzzSettings(f *testing.F) {
	if _, err := exec.LookPath("git"); err != nil {
		f.Skip("SKIPPED, NOTHING COMPARED: git is not installed")
	}
	for _, s := range []string{
		"[core]\n\texcludesFile = ~/x # why\n", "[a \"b\\\"c\"]\nx\ny = \" z \" ;\n", "[A.B]x=1\\\n2\n", "\xef\xbb\xbf[core]\r\nx = a\\tb  c\t\r\n", "# \\\n[x]y\n",
		"[x]\ny = \"open\n", "[x] y = \\q\n", "x = 1\n", "[x]\n1 = 2\n", "[ x]\n", "[x ]\n", "[x]\ny z\n", "[x]y=a ; b\nz=a\\\n # c\n", "[x \"\"]y=1", "[]y=1", "[x]\ny==1\n", "[x]\ny = a\\",
		"[x]\r\ny\r\n", "[x]y = \"a\\\nb\"\n", "[x\t\"b\"]y=1", "[x \"b\" ]y=1", "[x]\fy=1\f2\f\n", "[x.y \"Z\"]k=v\n", "[x]k\t=\tv\n", "[x]k = \\\\ \\\" \\n \\b\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.IndexByte(data, 0) >= 0 || len(data) > 500 {
			t.Skip()
		}
		want, wantOK := gitSettings(t, data)
		got, ok := settings(data)
		for _, list := range [][]string{got, want} {
			for i := range list { // git before 2.46 makes every white space within a value a space
				list[i] = strings.NewReplacer("\t", " ", "\r", " ").Replace(list[i])
			}
		}
		if ok != wantOK || ok && !slices.Equal(got, want) {
			t.Fatalf("%q\n%q %v\ngit says\n%q %v", data, strings.Join(got, "|"), ok, strings.Join(want, "|"), wantOK)
		}
	})
}
