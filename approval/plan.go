package approval

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"
)

// Plan is all that a change is: two plans with the same digest do the same thing.
type Plan struct {
	Operation          string // the tool, or what it boils down to: "replace", "create", "remove"
	Session, Principal string
	Changes            []Change // in the order in which they will be made
}

// Change is what happens to one path.
type Change struct {
	Path   string // true name
	Before string // SHA-256 of the content in hex, "directory", or "symlink " and its text; "" when there is nothing
	After  string // likewise; "" when nothing will be there
	Mode   string // what mode and owner become when they change as well, or are exact; else ""
}

// Digest is the SHA-256, in hex, of the plan as canonical JSON: fixed fields in fixed order, no blanks, and a string that is
// not UTF-8 as {"bytes":"base64"}, so that no two names become one.
func (p Plan) Digest() string {
	type change struct {
		After  text `json:"after"`
		Before text `json:"before"`
		Mode   text `json:"mode"`
		Path   text `json:"path"`
	}
	changes := make([]change, len(p.Changes))
	for i, c := range p.Changes {
		changes[i] = change{text(c.After), text(c.Before), text(c.Mode), text(c.Path)}
	}
	data, err := json.Marshal(struct {
		Changes   []change `json:"changes"`
		Operation text     `json:"operation"`
		Principal text     `json:"principal"`
		Session   text     `json:"session"`
	}{changes, text(p.Operation), text(p.Principal), text(p.Session)})
	if err != nil { // strings and slices of strings only
		panic("approval: plan can't be encoded: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

type text string

func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string]string{"bytes": base64.StdEncoding.EncodeToString([]byte(t))})
}
