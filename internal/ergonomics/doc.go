// Package ergonomics measures how a model's slips are answered. It has no code of its own, only
// tests: a corpus of near-misses, and a model that follows each answer to the letter. It touches
// folders that it makes itself, and reads source files of the Go tree and of the module cache.
package ergonomics
