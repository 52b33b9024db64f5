package edit

import "strings"

// Encode writes a whole new text the way the file that it replaces is written: in its charset, with its byte order mark if it has one. encoding
// names another charset; "" keeps that of like, which is UTF-8 when like is nil, empty or binary. Line endings are taken as they are. name is
// the charset as Detect names it.
//
// Errors are *UnencodableError (Index 0) and *EncodingError.
func Encode(text string, like []byte, encoding string) (raw []byte, name string, err error) {
	d, err := openToChange(like, encoding)
	if err == nil && encoding != "" && len(d.bom) == 0 {
		d, err = open(nil, encoding) // a mark is made only if the name asks for one
	}
	if err != nil {
		return nil, "", err
	}
	if len(d.bom) > 0 {
		text = strings.TrimPrefix(text, "\ufeff")
	}
	if !d.cs.mapped() {
		return append(append(make([]byte, 0, len(d.bom)+len(text)), d.bom...), text...), d.cs.name, nil
	}
	body, bad := d.cs.encode(text)
	if bad >= 0 {
		return nil, "", unencodable(0, text, text, bad, d.cs.name, d.guessed)
	}
	return append(append(make([]byte, 0, len(d.bom)+len(body)), d.bom...), body...), d.cs.name, nil
}
