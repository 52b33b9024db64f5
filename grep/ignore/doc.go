// Package ignore reads git's ignore rules with git's exact meaning, and decides which entries of a
// tree they hide.
//
// The matcher ([Parse], [File], [Compile], [Glob]) is pure. The loader ([Load], [Set]) reads rule
// files through [tree.Dir], by handles only. An entry that policy hides does not exist for it; when a
// directory above the root is hidden, the climb ends there, and nothing counts as unread. The caller walks: it lists a directory,
// asks [Set.Enter] for the rules that hold there, asks [Set.Ignored] about every entry, and does
// not descend into ignored directories.
//
// The first of these that matches decides, and within a file its last matching line:
//   - .ignore files, deepest first (they beat .gitignore at any depth, as in ripgrep);
//   - .gitignore files, deepest first, up to the root of the repository;
//   - .git/info/exclude, of the common directory when this is a worktree;
//   - core.excludesFile: the one that the repository's own configuration names, else the one that
//     the caller brings ([User.ExcludesPath] says where a user has it). Includes without a condition are followed.
//
// A nested repository starts anew: the .gitignore files around it do not reach in. core.ignorecase
// folds ASCII letters. As in git, a symbolic link named .gitignore is not read. Rule files that
// exist and cannot be read are counted, never passed over in silence.
//
// Two differences from git are intended. Outside a repository .gitignore files count from the root
// of the walk downwards. And a tracked file that a rule matches is ignored, because the index is
// not read; ripgrep does the same.
//
// Matching takes polynomial time for every pattern, and none panics. The matcher is tested against
// git itself on generated trees. docs/internals/decisions/0001-own-ignore-rules.md says why no package is
// used.
//
// Everything but [Scratch] is immutable once made, and safe for concurrent use.
package ignore
