package readers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// undecidable are pairs of language and encoding that nobody could tell on 22 November: they are in the table twice, with them and without.
var undecidable = map[string]bool{"ro.iso8859_16": true, "eo.iso8859_3": true, "vi.cp1258": true, "zh_CN.hz": true, "de.cp437": true, "fr.cp850": true, "pl.cp852": true}

var encodingsAlone = flag.Bool("readers.alone", false, "print the table of encodings without the other detectors, which take minutes")

// TestTableEncodings reads every sample of scripts/corpora/encodings.sh with no word about its encoding. Right is a text that is the
// original's, letter for letter. Beside it: uchardet, and Python's chardet and charset-normalizer, whose answers iconv decodes.
func TestTableEncodings(t *testing.T) {
	dir := filepath.Join(*tables, "encodings")
	list, err := os.ReadFile(filepath.Join(dir, "LIST"))
	if *tables == "" || err != nil {
		t.Skip("SKIPPED: no samples; make corpus makes them")
	}
	columns := []string{"ours", "uchardet", "chardet", "charset-normalizer"}
	if *encodingsAlone {
		columns = columns[:1]
	}
	ask := map[string]func() map[string]string{
		"uchardet": func() map[string]string { return uchardet(t, dir) },
		"chardet":  func() map[string]string { return python(t, dir, "chardet", "chardet.detect(b)['encoding']") },
		"charset-normalizer": func() map[string]string {
			return python(t, dir, "charset_normalizer", "getattr(charset_normalizer.from_bytes(b).best(), 'encoding', None)")
		},
	}
	peers := map[string]map[string]string{}
	for _, who := range columns[1:] {
		peers[who] = ask[who]()
	}
	var rows []string
	right, all := map[string]map[string]int{}, map[string]int{}
	for l := range strings.Lines(string(list)) {
		var name, set, lang string
		if _, err := fmt.Sscan(l, &name, &set, &lang); err != nil {
			t.Fatal(l, err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, name))
		want, err2 := os.ReadFile(filepath.Join(dir, name+".utf8"))
		if err = cmp.Or(err, err2); err != nil {
			t.Fatal(err)
		}
		in := []string{set, "half " + string('A'+rune(crc32.ChecksumIEEE([]byte(lang))%2)), "all"}
		part := strings.Split(name, ".")
		if !undecidable[part[0]+"."+part[1]] {
			in = append(in, "all without the seven pairs")
		}
		switch part[1] {
		case "mac_roman", "cp437", "cp850", "cp852":
			in = append(in, "mac-roman, cp437, cp850, cp852")
		}
		read := map[string]string{}
		if !isBinary(raw) {
			enc, _, text, err := decodeWhole(raw, "")
			if err != nil {
				t.Error(name, err)
			}
			read["ours"] = strings.ToValidUTF8(string(text), "\ufffd")
			wrong := norm.NFC.String(read["ours"]) != norm.NFC.String(string(want))
			if wrong {
				t.Logf("wrong: %s %s as %s: %.60q", set, name, enc.Name, differs(read["ours"], string(want)))
			}
		} else {
			t.Logf("wrong: %s %s binary", set, name)
		}
		for peer, said := range peers {
			if out, err := exec.Command("iconv", "-f", said[name], "-t", "UTF-8", filepath.Join(dir, name)).Output(); said[name] != "" && err == nil {
				read[peer] = strings.TrimPrefix(string(out), "\ufeff")
			}
		}
		for _, row := range in {
			if all[row]++; all[row] == 1 {
				rows = append(rows, row)
				right[row] = map[string]int{}
			}
			for _, who := range columns {
				if norm.NFC.String(read[who]) == norm.NFC.String(string(want)) {
					right[row][who]++
				}
			}
		}
	}
	for _, row := range rows {
		line := fmt.Sprintf("| %s | %d |", row, all[row])
		for _, who := range columns {
			if said, there := peers[who]; there && said == nil {
				line += " - |"
			} else {
				line += fmt.Sprintf(" %d (%.3f) |", right[row][who], float64(right[row][who])/float64(all[row]))
			}
		}
		t.Log(line)
	}
	for row, least := range map[string]float64{"all": .93, "all without the seven pairs": .97, "declared": .93, "mac-roman, cp437, cp850, cp852": .9} {
		if is := float64(right[row]["ours"]) / float64(all[row]); is < least {
			t.Errorf("%s: %.3f, less than %.2f", row, is, least)
		}
	}
}

// differs is the first line of got that is not that of want.
func differs(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return g[i]
		}
	}
	return ""
}

func uchardet(t *testing.T, dir string) map[string]string {
	if _, err := exec.LookPath("uchardet"); err != nil {
		t.Log("SKIPPED: uchardet is not here")
		return nil
	}
	said := map[string]string{}
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	out, _ := exec.Command("uchardet", names...).Output()
	for l := range bytes.Lines(out) {
		name, enc, _ := strings.Cut(strings.TrimSpace(string(l)), ": ")
		said[filepath.Base(name)] = enc
	}
	return said
}

// python asks the Python module about each file of dir: answer is an expression over its bytes b.
func python(t *testing.T, dir, module, answer string) map[string]string {
	said := map[string]string{}
	python := "python3"
	if exec.Command(python, "-c", "import "+module).Run() != nil {
		python = "/usr/bin/python3" // Debian's, beside another
	}
	out, err := exec.Command(python, "-c", `import json, os, sys, `+module+`
def ask(f):
    b = open(f, 'rb').read()
    return `+answer+`
print(json.dumps({n: ask(os.path.join(sys.argv[1], n)) or '' for n in os.listdir(sys.argv[1])}))`, dir).Output()
	if err != nil || json.Unmarshal(out, &said) != nil {
		t.Logf("SKIPPED: Python's %s is not here", module)
		return nil
	}
	return said
}
