package ergonomics

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A source is a real file that is edited.
type source struct {
	name string // in the tree of a case
	lang string
	unit string // one level of indentation
	text string
}

// taken lists files of the Go tree, whose texts are not in this repository, and files of testdata, written by hand for what that tree has not.
var taken = []struct{ path, lang, unit string }{
	{"src/encoding/csv/reader.go", "go", "\t"},
	{"src/net/textproto/reader.go", "go", "\t"},
	{"src/archive/tar/common.go", "go", "\t"},
	{"src/net/smtp/smtp.go", "go", "\t"},
	{"src/expvar/expvar.go", "go", "\t"},
	{"src/text/tabwriter/tabwriter.go", "go", "\t"},
	{"src/log/syslog/syslog.go", "go", "\t"},
	{"src/runtime/runtime-gdb.py", "py", "\t"},
	{"src/cmd/vendor/github.com/google/pprof/internal/driver/html/common.js", "js", "  "},
	{"src/cmd/vendor/github.com/google/pprof/internal/driver/html/stacks.js", "js", "  "},
	{"src/cmd/vendor/github.com/google/pprof/internal/driver/html/common.css", "css", "  "},
	{"src/cmd/vendor/github.com/google/pprof/internal/driver/html/header.html", "html", "  "},
	{"lib/wasm/wasm_exec.js", "js", "\t"},
	{"src/make.bash", "sh", "\t"},
	{"src/runtime/cgo/gcc_libinit.c", "c", "\t"},
	{"src/runtime/HACKING.md", "md", "\t"},
	{"testdata/queue.py", "py", "    "},
	{"testdata/settings.py", "py", "    "},
	{"testdata/app.ts", "js", "  "},
	{"testdata/deploy.yaml", "yaml", "  "},
	{"testdata/setup.sh", "sh", "    "},
	{"testdata/Shop.java", "c", "    "},
	{"testdata/guide.md", "md", "    "},
	{"testdata/Makefile", "make", "\t"},
}

var sources = sync.OnceValues(func() (out []source, err error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	for _, f := range taken {
		name := filepath.FromSlash(f.path)
		if !strings.HasPrefix(f.path, "testdata/") {
			name = filepath.Join(strings.TrimSpace(string(goroot)), name)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, source{filepath.Base(f.path), f.lang, f.unit, string(b)})
	}
	return out, nil
})

func allSources(t *testing.T) []source {
	t.Helper()
	s, err := sources()
	if err != nil {
		t.Skip("SKIPPED: the Go tree is not there: ", err)
	}
	return s
}
