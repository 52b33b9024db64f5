package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// A script is one of the kind that models write, and the tree that it works on.
type script struct{ name, tree, code string }

// walks are the ways in which models write a walk.
var walks = []string{`async function walk(dir) {
  const out = [];
  for (const name of await fs.readdir(dir)) {
    const path = dir + "/" + name;
    if ((await fs.stat(path)).isDirectory) out.push(...(await walk(path)));
    else out.push(path);
  }
  return out;
}
`, `const walk = async (dir) => (await Promise.all((await fs.readdir(dir)).map(async (name) => {
  const path = [dir, name].join("/");
  const { isFile } = await fs.stat(path);
  return isFile ? [path] : walk(path);
}))).flat();
`, `async function* each(dir) {
  const queue = [dir];
  while (queue.length) {
    const d = queue.shift();
    for (const name of await fs.readdir(d)) {
      const s = await fs.stat(` + "`${d}/${name}`" + `);
      if (s.isDirectory) queue.push(` + "`${d}/${name}`" + `); else yield ` + "`${d}/${name}`" + `;
    }
  }
}
async function walk(dir) { const all = []; for await (const f of each(dir)) all.push(f); return all; }
`}

// scripts are the corpus: each template of testdata/js with each of its values, on each of its trees.
func scripts(t testing.TB) (out []script) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/js/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		must(t, err)
		for _, section := range archive.Files {
			out = append(out, expand(t, section.Name, string(section.Data))...)
		}
	}
	return out
}

func expand(t testing.TB, name, text string) (out []script) {
	t.Helper()
	var trees, values []string
	constant, ways := "", []string{""}
	body := text
	for line := range strings.Lines(text) {
		what, ok := strings.CutPrefix(line, "// ")
		if !ok {
			break
		}
		body = body[len(line):]
		if list, ok := strings.CutPrefix(what, "trees: "); ok {
			trees = strings.Fields(list)
		} else if list, ok := strings.CutPrefix(what, "with "); ok {
			constant, list, _ = strings.Cut(strings.TrimSpace(list), ": ")
			values = strings.Split(list, " | ")
		} else if strings.TrimSpace(what) == "walk" {
			ways = walks
		}
	}
	if len(trees) == 0 || len(values) == 0 {
		t.Fatalf("%s has no trees or no values", name)
	}
	for _, tree := range trees {
		for _, value := range values {
			if !json.Valid([]byte(value)) {
				t.Fatalf("%s: %s is not JSON", name, value)
			}
			for i, way := range ways {
				out = append(out, script{strings.Join([]string{name, tree, value, string(rune('a' + i))}, " "), tree,
					"const " + constant + " = " + value + ";\n" + way + body})
			}
		}
	}
	return out
}

// treeOf lists a directory: names and contents.
func treeOf(t testing.TB, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		name := p[len(root)+1:]
		if d.IsDir() {
			out[name+"/"] = ""
			return nil
		}
		b, err := os.ReadFile(p)
		out[name] = string(b)
		return err
	})
	must(t, err)
	return out
}

// The corpus has five hundred scripts, each with a name of its own.
func TestScriptCorpus(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, s := range scripts(t) {
		if scriptTrees[s.tree] == nil || names[s.name] {
			t.Errorf("%s: there is no such tree, or another one has its name", s.name)
		}
		names[s.name] = true
	}
	if len(names) < 500 {
		t.Errorf("there are %d scripts", len(names))
	}
}
