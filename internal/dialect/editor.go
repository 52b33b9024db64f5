package dialect

import (
	"context"
	"errors"
	"io/fs"
)

// An Editor is the user's editor, as a client of the Agent Client Protocol: the Overlay of a client
// that cannot say of which files it has unsaved text. Its text is compared with the disk, and
// counts where the two differ. What was seen of it is remembered by principal and session. The
// functions may be called at the same time, and must come back when ctx ends.
type Editor struct {
	// Read is fs/read_text_file, without line and limit: all of a file. A file that the client does
	// not have is fs.ErrNotExist (-32002 in the protocol); any other error ends the call. nil: the
	// client does not offer it. Then all is as the disk has it, and Write is never called.
	Read func(ctx context.Context, path string) (text string, err error)
	// Write is fs/write_text_file. It is called for files with unsaved text only. nil: the client
	// does not offer it. Then a file with unsaved text can be read, and is not changed.
	Write func(ctx context.Context, path, text string) error
}

// Load is the text that the editor shows of a path, be it saved or not.
func (e *Editor) Load(ctx context.Context, path string) (text string, held bool, err error) {
	if e.Read == nil {
		return "", false, nil
	}
	text, err = e.Read(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return text, err == nil, err
}

// Store gives the editor a text. It cannot compare it with the old one.
func (e *Editor) Store(ctx context.Context, path, _, text string) error {
	if e.Write == nil {
		return errors.New("it takes no text")
	}
	return e.Write(ctx, path, text)
}
