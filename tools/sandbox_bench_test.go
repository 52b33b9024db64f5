package tools_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/tools"
)

// BenchmarkSandboxed makes the same calls on this machine and through a worker, in turns: on files of 4 KB, and
// a search of Go's source tree. Report: medians in µs, and what the sandbox adds.
func BenchmarkSandboxed(b *testing.B) {
	how := "bwrap"
	if _, err := exec.LookPath(how); err != nil {
		how = "worker"
	}
	for _, tool := range []string{"Read", "Edit", "Write", "Grep"} {
		b.Run(tool, func(b *testing.B) {
			sides := [2]string{"", how}
			var suites [2]*tools.Suite
			var files [2]string
			for i := range sides {
				var root string
				suites[i], root = suiteIn(b, sides[i], func(fs *config.FS) {
					fs.CheckpointBeforeMutation = true
				}, tools.Options{})
				if tool == "Grep" {
					plantGo(b, root)
				}
				files[i] = write(b, root+"/f.go", "counter 0;\n"+strings.Repeat("some line of code that is about sixty-four bytes in its length\n", 64))
			}
			var spent [2][]time.Duration
			b.ResetTimer()
			for n := range b.N {
				for i, s := range suites {
					args := map[string]string{
						"Read":  fmt.Sprintf(`{"file_path":%q}`, files[i]),
						"Edit":  fmt.Sprintf(`{"file_path":%q,"old_string":"counter %d;","new_string":"counter %d;"}`, files[i], n, n+1),
						"Grep":  `{"pattern":"func Test[A-Z]+x","output_mode":"content"}`,
						"Write": fmt.Sprintf(`{"file_path":"%s%d","content":"counter %d"}`, files[i], n, n),
					}[tool]
					start := time.Now()
					benchCall(b, s, tool, args)
					spent[i] = append(spent[i], time.Since(start))
				}
			}
			b.StopTimer()
			var median [2]float64
			for i, d := range spent {
				slices.Sort(d)
				median[i] = float64(d[len(d)/2].Nanoseconds()) / 1e3
			}
			b.ReportMetric(median[0], "here-µs")
			b.ReportMetric(median[1], "inside-µs")
			b.ReportMetric(median[1]-median[0], "added-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// plantGo copies the source tree of Go.
func plantGo(b *testing.B, root string) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip("SKIPPED: ", err)
	}
	if err := os.CopyFS(root+"/go", os.DirFS(strings.TrimSpace(string(out))+"/src")); err != nil {
		b.Fatal(err)
	}
}
