package readers

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"image"
	"image/png"
	"strings"
	"sync"
	"testing"
	"time"

	"moltisfs/internal/share"
)

// TestDecodersShareMemory: every decoder, of any Readers, waits for room in the one budget of the process, and says so when it gets none.
func TestDecodersShareMemory(t *testing.T) {
	var packed, drawing bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte("a line\n")); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	must(t, png.Encode(&drawing, image.NewGray16(image.Rect(0, 0, 40, 40))))
	files := map[string][]byte{
		"png": drawing.Bytes(), "gzip": packed.Bytes(), "docx": docxOf(t, "<w:p><w:r><w:t>words</w:t></w:r></w:p>"),
		"pdf": corpusFile(t, "pdf/latex_german.pdf"),
	}
	for _, name := range []string{"still.gif", "lossy.webp", "rgb24.bmp", "rgb16.tiff", "still.avif", "still.heic"} {
		files[name] = corpusFile(t, "image/"+name)
	}
	c := testConfig()
	c.Deadline = 20 * time.Millisecond
	r := opened(t, c)
	must(t, decoders.Take(t.Context(), "", DecoderMemory))
	held := true
	free := func() {
		if held {
			decoders.Give("", DecoderMemory)
			held = false
		}
	}
	defer free()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, b := range files {
		var busy *Busy
		if _, err := r.Read(t.Context(), sourceOf(b), Options{}); !errors.As(err, &busy) || busy.Hint() == "" {
			t.Errorf("%s is read without asking for memory: %v", name, err)
		}
		if _, err := r.reserve(gone, "image", 1); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	}
	waiting := make(chan error)
	go func() {
		_, err := testReaders(t).Read(t.Context(), sourceOf(files["png"]), Options{})
		waiting <- err
	}()
	free()
	if err := <-waiting; err != nil {
		t.Errorf("who waited: %v", err)
	}
	for name, b := range files {
		_, _ = testReaders(t).Read(t.Context(), sourceOf(b), Options{})
		if !decoders.Try("", DecoderMemory) {
			t.Fatalf("%s keeps its room", name)
		}
		decoders.Give("", DecoderMemory)
	}
}

// A Readers that has less memory takes a larger part of the one budget.
func TestLessMemory(t *testing.T) {
	c := testConfig()
	c.Memory = 256 << 20
	r := opened(t, c)
	for _, row := range []struct{ needs, takes int64 }{
		{128 << 20, DecoderMemory / 2}, {1 << 40, DecoderMemory}, {0, 0},
	} {
		free, err := r.reserve(t.Context(), "image", row.needs)
		must(t, err)
		left := DecoderMemory - row.takes
		if row.takes > 0 && decoders.Try("other", left+1) {
			t.Errorf("%d takes less than %d", row.needs, row.takes)
			decoders.Give("other", left+1)
		}
		if !decoders.Try("other", left) {
			t.Errorf("%d takes more than %d", row.needs, row.takes)
		} else {
			decoders.Give("other", left)
		}
		free()
	}
}

// However much one principal has read and waiting to be read, another's files are read at once. A PDF, which may need more
// than half of the memory, waits for one of what is being read, and for nothing that waits.
func TestDecodersOfOthers(t *testing.T) {
	r := opened(t, testConfig())
	ctx, stop := context.WithCancel(share.By(t.Context(), "alice"))
	var reading sync.WaitGroup
	one := make(chan bool) // ends one of what she has read
	for range 40 {
		reading.Go(func() {
			for ctx.Err() == nil {
				free, err := r.reserve(ctx, "image", DecoderMemory/8)
				if err != nil {
					return
				}
				select {
				case <-ctx.Done():
				case <-one:
				}
				free()
			}
		})
	}
	defer reading.Wait()
	defer stop()
	for decoders.Try("alice", DecoderMemory/8) { // until she has her part
		decoders.Give("alice", DecoderMemory/8)
	}
	for _, name := range []string{"image/still.gif", "image/lzw.tiff", "pdf/latex_german.pdf"} {
		if strings.HasPrefix(name, "pdf") {
			go func() {
				for ctx.Err() == nil {
					select {
					case one <- true:
					case <-ctx.Done():
					}
				}
			}()
		}
		if _, err := r.Read(share.By(t.Context(), "bob"), sourceOf(corpusFile(t, name)), Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
