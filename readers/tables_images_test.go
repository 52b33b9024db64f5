package readers

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTableImages shows every image of scripts/corpora/images.sh, beside Python's Pillow, which is asked twice: as it is, and with leave to show what a cut file has.
func TestTableImages(t *testing.T) {
	dir := filepath.Join(*tables, "images")
	names, _ := os.ReadDir(dir)
	if *tables == "" || len(names) == 0 {
		t.Skip("SKIPPED: no images; make corpus fetches them")
	}
	peer := map[string][2]string{}
	out, err := exec.Command("/usr/bin/python3", "-c", `import json, os, sys, warnings
from PIL import Image, ImageFile
warnings.simplefilter('ignore')
def show(f):
    try:
        m = Image.open(f); m.load(); return '%d x %d' % m.size
    except Exception: return ''
said = {}
for n in os.listdir(sys.argv[1]):
    f = os.path.join(sys.argv[1], n)
    ImageFile.LOAD_TRUNCATED_IMAGES = False; a = show(f)
    ImageFile.LOAD_TRUNCATED_IMAGES = True; said[n] = [a, show(f)]
print(json.dumps(said))`, dir).Output()
	if err != nil || json.Unmarshal(out, &peer) != nil {
		t.Log("SKIPPED: Python's Pillow is not here")
	}
	columns := []string{"files", "ours", "of these damaged", "refused, with a next move", "other sizes than Pillow", "Pillow", "Pillow, damaged too", "Pillow only"}
	counts := map[string]map[string]int{}
	for _, e := range names {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		kind := strings.ToLower(strings.TrimPrefix(filepath.Ext(e.Name()), "."))
		if kind = strings.TrimSuffix(strings.Replace(kind, "jpeg", "jpg", 1), "f"); kind == "avi" || kind == "gi" || kind == "ti" {
			kind += "f"
		}
		if strings.Contains(e.Name(), ".cut") {
			kind += ", cut"
		}
		if counts[kind] == nil {
			counts[kind] = map[string]int{}
		}
		add := func(column string) { counts[kind][column]++; counts["all"][column]++ }
		if counts["all"] == nil {
			counts["all"] = map[string]int{}
		}
		add("files")
		said := peer[e.Name()]
		c, err := readBytes(t, raw, Options{})
		m, shown := c.(*Image)
		var ours Hinter
		switch {
		case shown:
			if add("ours"); strings.Contains(m.Note, "damaged") {
				add("of these damaged")
			}
			size, turned := fmt.Sprintf("%d x %d", m.OriginalWidth, m.OriginalHeight), fmt.Sprintf("%d x %d", m.OriginalHeight, m.OriginalWidth)
			if said[1] != "" && said[1] != size && said[1] != turned { // Pillow leaves pictures as they are stored
				add("other sizes than Pillow")
				t.Logf("%s: %s, Pillow %s", e.Name(), size, said[1])
			}
		case errors.As(err, &ours):
			add("refused, with a next move")
		case err != nil:
			t.Errorf("%s: %v", e.Name(), err)
		}
		if said[0] != "" {
			add("Pillow")
		}
		if said[1] != "" {
			if add("Pillow, damaged too"); !shown {
				add("Pillow only")
				t.Logf("%s: %v %v; Pillow %s", e.Name(), c, err, said[1])
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n| kind | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---:|", len(columns)))
	kinds := []string{}
	for kind := range counts {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		fmt.Fprintf(&b, "| %s |", kind)
		for _, c := range columns {
			fmt.Fprintf(&b, " %d |", counts[kind][c])
		}
		b.WriteString("\n")
	}
	t.Log(b.String())
}
