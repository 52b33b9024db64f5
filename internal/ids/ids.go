// Package ids draws and reads the names of checkpoints and of entries in the trash: a prefix such as
// "ck-" and three to ten characters of Crockford's base 32, drawn at random, ten as a rule. They are short, because models copy them.
// A mistyped or invented one names nothing.
package ids

import (
	"crypto/rand"
	"strings"
)

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

const length = 10

// Draw gives the characters of a new id. Tests whose texts have ids in them put another function here, that
// numbers them, before anything is opened: seq is the number of the row.
var Draw = func(seq int64) string {
	b := make([]byte, length)
	rand.Read(b)
	for i := range b {
		b[i] = alphabet[b[i]&31]
	}
	return string(b)
}

// New draws a name for the row seq.
func New(prefix string, seq int64) string { return prefix + Draw(seq) }

// Parse gives s in its canonical spelling, or why it can't be an id with that prefix. As Crockford's base 32 does it forgives case, O for 0, I and L for 1, and white space around.
func Parse(prefix, s string) (id, why string) {
	t, ok := strings.CutPrefix(strings.ToUpper(strings.TrimSpace(s)), strings.ToUpper(prefix))
	if !ok {
		return "", "must begin with " + prefix
	}
	if len(t) < 3 || len(t) > length {
		return "", "wrong length"
	}
	t = strings.NewReplacer("O", "0", "I", "1", "L", "1").Replace(t)
	if strings.Trim(t, alphabet) != "" {
		return "", "has a character that no id has"
	}
	return prefix + t, ""
}
