// Command searchbench measures package grep beside ripgrep and the two Go packages of the field. scripts/bench-search.sh fetches what it
// needs and runs it.
//
//	searchbench search [flags] [PATTERN] DIR   one search as a process of its own; prints as ripgrep does
//	searchbench trees DIR                      makes the trees that are made and not fetched
//	searchbench peer NAME DIR                  lists a tree with a package of the field
//	searchbench compare -dir DIR               runs every row and prints the tables of docs/benchmarks.md
package main

import (
	"fmt"
	"os"

	"moltisfs/grep/ignore/peers"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "searchbench: say search, trees or compare")
		os.Exit(2)
	}
	var err error
	switch args := os.Args[2:]; os.Args[1] {
	case "search":
		err = searchOnce(args)
	case "trees":
		err = makeTrees(args[0])
	case "peer":
		err = peers.List(os.Stdout, args[0], args[1])
	case "compare":
		err = compare(args)
	default:
		err = fmt.Errorf("there is no %q", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "searchbench:", err)
		os.Exit(2)
	}
}
