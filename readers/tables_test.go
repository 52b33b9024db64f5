package readers

import "flag"

// tables is the directory that make corpus filled with files of other people. The TestTable tests read it and print the tables of
// docs/internals/benchmarks.md; they are skipped where it is empty.
var tables = flag.String("readers.tables", "", "the directory of other people's files to print the tables of")
