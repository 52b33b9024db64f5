// Package grep searches a tree of files, as ripgrep would: regular expressions over the content, globs over the names, git's ignore
// rules, many workers.
//
//	m, err := match.Compile(`func \w+`, match.Options{})
//	r, err := grep.Search(ctx, grep.Walk{Dir: grep.FS(os.DirFS("."))}, grep.Query{Matcher: m, Mode: grep.Content, Limit: 250})
//	f, err := grep.Files(ctx, grep.Walk{Dir: grep.FS(os.DirFS("."))}, grep.GlobQuery{Pattern: "**/*.go"})
//
// The tree is a Dir: FS makes one of any fs.FS, Guarded one of a handle that package guardfs has judged. Patterns are package
// match's, ignore rules package ignore's.
//
// # What it guarantees
//
//   - The answer is that of a search by one worker in order: the number of workers and their luck change only the time.
//   - Totals count everything that matches, also what a limit leaves out. What was not searched is counted by reason in Skipped.
//   - Time is linear in the bytes searched, but for patterns that need backtracking, which have a limit of their own. Memory above
//     the result is a few buffers a worker, whatever the size of the files.
//   - Text in UTF-16 or a legacy encoding is decoded and searched; a file that is not text is skipped by its content, not its name.
//   - A context that reaches its deadline ends with what was found by then, marked Partial.
//   - Links are not followed, and other mounts not entered unless Walk says so.
//
// # Where it differs from ripgrep
//
// Match sets are ripgrep's on every tree, mode and pattern that the tests compare, but for these rulings:
//
//   - Encodings: text in a legacy encoding, or in UTF-16 without a mark, is searched as what it says, not as its bytes.
//   - Line ends: with match.Options.CRLF a carriage return before a line end is no part of the line, unless the pattern names it.
//   - Ends of the text: without Multiline "\A" and "\z" stand at the ends of a line, where ripgrep finds them at those of what it reads.
//   - Backtracking: look-around and back-references are run, not refused.
//   - Binary files: matches are withheld wherever a NUL byte is in the file, and none of their lines is ever shown.
//   - Several lines: Count counts lines there too, and matches apart; OnlyMatching gives each match as one row, line ends included.
//   - Empty matches: OnlyMatching and Count have as many as package regexp finds, none behind the line end, one at the end of a last line without one.
//   - Globs: "?" and classes take a character; an empty alternative in braces is one; "src/" means what is below it, "./x" is "/x".
//   - Ignored: what package ignore says, which is what git says.
//
// # What it does not
//
//   - It is no snapshot: a file that changes meanwhile is searched as it is read.
//   - It decides nothing about access. Whoever hands in the Dir does.
//
// Search and Files may be called from many goroutines; an Index may be shared by all of them.
package grep
