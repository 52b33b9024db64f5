package guardfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// copyChunk is what is copied between two looks at the context.
const copyChunk = 1 << 20

// stream hands the first size bytes of src to write, and hashes them meanwhile.
func stream(ctx context.Context, src io.ReaderAt, size int64, write func([]byte) error) (string,
	error) {
	sum, hashed := sha256.New(), make(chan struct{}, 1)
	hashed <- struct{}{}
	var buffers [2][]byte
	for i := range buffers {
		buffers[i] = make([]byte, min(copyChunk, max(size, 1)))
	}
	for at, turn := int64(0), 0; at < size; turn = 1 - turn {
		if err := ctx.Err(); err != nil {
			<-hashed
			return "", err
		}
		chunk := buffers[turn][:min(copyChunk, size-at)]
		n, err := src.ReadAt(chunk, at)
		chunk, at = chunk[:n], at+int64(n)
		<-hashed // the other one is free then
		if err == io.EOF && at == size {
			err = nil
		}
		if err != nil {
			return "", err
		}
		go func() {
			sum.Write(chunk) //nolint:errcheck // never fails
			hashed <- struct{}{}
		}()
		if err := write(chunk); err != nil {
			<-hashed
			return "", err
		}
	}
	<-hashed
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// copied says that the source is still what it was when it was opened, and so what was copied.
func (what *NewObject) copied() error {
	now, err := what.Source.Stat()
	if err != nil {
		return err
	}
	was := what.Source.Info()
	if now.ID != was.ID || now.Size != was.Size || !now.ModTime.Equal(was.ModTime) ||
		!now.ChangeTime.Equal(was.ChangeTime) {
		return &ConflictError{Path: what.Source.path(), Why: ContentChanged}
	}
	return nil
}
