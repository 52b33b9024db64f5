package grep_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"moltisfs/grep"
	"moltisfs/grep/match"
)

// Any fs.FS can be searched; ignore files hold there as git would have them.
func ExampleSearch() {
	tree := fstest.MapFS{
		".gitignore":   {Data: []byte("build/\n")},
		"main.go":      {Data: []byte("package main\n\nfunc main() {}\n")},
		"build/gen.go": {Data: []byte("func generated() {}\n")},
	}
	m, err := match.Compile(`func \w+`, match.Options{})
	if err != nil {
		log.Fatal(err)
	}
	r, err := grep.Search(context.Background(), grep.Walk{Dir: grep.FS(tree)}, grep.Query{Matcher: m, Mode: grep.Content})
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range r.Rows {
		fmt.Printf("%s:%d:%s\n", row.Path, row.Line, row.Text)
	}
	fmt.Println("ignored:", r.Skipped.Ignored)
	// Output:
	// main.go:3:func main() {}
	// ignored: 1
}
