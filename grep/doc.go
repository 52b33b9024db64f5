// Package grep searches a tree of files, as ripgrep would: regular expressions over the content,
// globs over the names, git's ignore rules, many workers.
//
//	m, err := match.Compile(`func \w+`, match.Options{})
//	tree := grep.Walk{Dir: grep.FS(os.DirFS("."))}
//	r, err := grep.Search(ctx, tree, grep.Query{Matcher: m, Mode: grep.Content, Limit: 250})
//	f, err := grep.Files(ctx, tree, grep.GlobQuery{Pattern: "**/*.go"})
//
// The tree is a Dir. FS makes one of any fs.FS; for another kind of tree implement Dir.
// Package match has the patterns, package ignore the ignore rules. Guarded and GuardedFile are for this module's own handles.
//
// # What it guarantees
//
//   - The answer is the same as if one worker searched in order: more workers change only the time.
//   - Totals count everything that matches, also what a limit leaves out. Skipped counts the
//     files and directories that were not searched, by reason.
//   - Time is linear in the bytes searched. Besides the result it uses a few buffers for each worker,
//     whatever the size of the files.
//   - A document whose text [Walk.Documents] makes is searched by that text, after all other files.
//   - Text in UTF-16 or a legacy encoding is decoded and searched. A file that is not text is
//     recognised by its content, not its name, and skipped.
//   - A context that reaches its deadline ends with the matches found by then, marked Partial.
//   - A root that is not there is an error, and no empty answer.
//   - Links are not followed, and other mounts not entered unless Walk says so.
//
// # Where it differs from ripgrep
//
// It finds what ripgrep finds on every tree, mode and pattern that the tests compare, with these
// exceptions:
//
//   - Encodings: text in a legacy encoding, or in UTF-16 without a mark, is decoded and searched.
//     Its bytes are not.
//   - Line ends: with match.Options.CRLF a carriage return before a line end is no part of the
//     line, unless the pattern names it.
//   - Ends of the text: without Multiline "\A" and "\z" stand at the ends of a line. In ripgrep
//     they stand at the ends of the buffer.
//   - Binary files: those with a NUL in their first 8,000 bytes, as in git. One that matches is named and no line
//     of it is shown. In a tree its first 256 KiB are searched.
//   - Several lines: Count counts lines there too, and matches apart. OnlyMatching gives each match
//     as one row, line ends included.
//   - Empty matches: OnlyMatching and Count have as many as package regexp finds, none behind the
//     line end, one at the end of a last line without one.
//   - Globs: "?" and classes take a character; an empty alternative in braces is one; "src/" means
//     everything below it, "./x" is "/x".
//   - Ignored: as package ignore says, which follows git.
//
// # What it does not
//
//   - It is no snapshot: a file that changes meanwhile is searched as it is read.
//   - It decides nothing about access. The Dir does.
//
// Search and Files may be called from many goroutines.
package grep
