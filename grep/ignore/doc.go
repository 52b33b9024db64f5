// Package ignore reads git's ignore rules with git's exact meaning and decides which entries of a tree they hide.
//
// The matcher ([Parse], [File], [Compile], [Glob]) is pure. The loader ([Load], [Set]) reads rule files through
// the small interface [Dir], by handles only. Walking is the caller's business: it lists a directory, asks
// [Set.Enter] for the rules that hold there, asks [Set.Ignored] about every entry, and does not descend into what is ignored.
//
// In order, the first that speaks decides, and within a file its last matching line:
//   - .ignore files, deepest first (they beat .gitignore at any depth, as in ripgrep);
//   - .gitignore files, deepest first, up to the root of the repository;
//   - .git/info/exclude, of the common directory when this is a worktree;
//   - the content of core.excludesFile: that which the repository's own configuration names, else what the caller brings
//     ([User.ExcludesPath] says where a user has it). Includes in configurations are followed.
//
// A nested repository starts anew: the .gitignore files around it do not reach in. core.ignorecase folds ASCII
// letters. A symbolic link named .gitignore is not read, as in git. Rule files that are there and cannot be read
// are counted, never passed over in silence.
//
// What differs from git, on purpose: outside a repository .gitignore files count from the walk's root downwards, and
// a tracked file that a rule matches is ignored, because the index is not read (ripgrep does the same).
//
// Matching time is polynomial for every pattern: no input makes it exponential, and none panics. The matcher is
// tested against git itself on generated trees; see docs/decisions/0001-own-ignore-rules.md for why no package is used.
//
// Everything but [Scratch] is immutable after construction and safe for concurrent use.
package ignore
