// Package pdf reads the pages of a PDF: text, annotations and form fields, and how the page looks.
//
// PDFium does it, a C++ library compiled to WebAssembly. PDFs are strangers' programs in all but
// name, so it runs in a sandbox without files, network or clock, with a cap on memory, and a
// deadline cuts it off. Every document gets an instance of its own. After a trap the sandbox is
// thrown away whole; the compiled code stays (package wasm).
//
// It opens no file, and starts nothing else. Its caller chooses the pages, and the words about them.
package pdf

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	engine "github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"moltisfs/internal/share"
	"moltisfs/readers/image"
	"moltisfs/readers/unreadable"
	"moltisfs/readers/wasm"
)

//go:generate go run ../../scripts/pack pdfium.wasm.zst

const (
	// Held is the longest PDF that is copied into the sandbox; of a longer one it asks for the parts
	// it needs.
	Held = 64 << 20
	// scannedPages is how many pages without a text layer are shown as images in one answer without
	// being asked. It ends before the next one.
	scannedPages = 5
	// pageImageBytes bounds all page images of one answer, as a multiple of the limit for one image.
	pageImageBytes = 3
	// patience is how many times Job.Time may pass while others have the processor, or the file is slow to read.
	patience = 6
)

// Job is one question to the engine: which pages, whether as images too, and the bounds of the answer.
type Job struct {
	Pages     func(total int) ([]int, error) // which pages, of so many
	Render    bool
	TextOnly  bool // no images, of pages without a text layer either
	Edge      int
	ImageMax  int64
	TextBytes int64
	Time      time.Duration // of the processor, where the system tells it
}

// Page is the engine's answer for one page.
type Page struct {
	Number      int
	Text        string // the text layer, and behind it the words of annotations and form fields
	NoText      bool   // there is no text layer
	Objects     int    // drawn on the page itself, counted where there is no text layer; -1 when the engine cannot tell
	Annotations int    // links included
	Overlaid    bool   // a form field or an annotation is shown on it
	Unsaid      bool   // one of them has no text
	Failed      bool
	Image       *PageImage

	looks []look
}

// DrawnOn says that a viewer shows something on the page.
func (p *Page) DrawnOn() bool { return p.Objects != 0 || p.Overlaid }

// Pages is the engine's whole answer.
type Pages struct {
	Total int
	Asked []int
	Pages []Page // a prefix of Asked: the engine stops when the text is longer than the answer may be
	Late  bool   // the rest was not read in time
}

// PageImage is one page as it looks.
type PageImage struct {
	Page      int    `json:"page"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Format    string `json:"format"`
	MediaType string `json:"media_type"`
	Base64    string `json:"base64"`
}

// Engine is PDFium in its sandbox, which the first PDF starts.
type Engine struct {
	memory int64       // bytes of the sandbox
	turn   *share.Pool // one, held while a document is read
	text   textPages   // its holder's

	mu     sync.Mutex // guards the rest; never held while PDFium runs
	cache  wasm.Cache
	pool   engine.Pool
	stop   context.CancelFunc
	closed bool
}

// notStarted says that the engine could not be started, as opposed to a bad document.
func notStarted(err error) error {
	return &unreadable.Unsupported{What: "a PDF", Why: "the PDF engine does not start (" + err.Error() + ")", Do: "Tell the operator; nothing in the request can change it."}
}

var errClosed = errors.New("the readers are closed")

// New is an engine whose sandbox has memory bytes. Compiled code is kept in the directory cache; "" is none. It starts nothing.
func New(memory int64, cache string) *Engine {
	return &Engine{memory: memory, cache: wasm.Cache{Dir: cache}, turn: share.New(1)}
}

// Close ends the sandbox. A Read after it fails.
func (p *Engine) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.drop()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cache.Close()
}

// start returns the running sandbox.
func (p *Engine) start() (pool engine.Pool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, notStarted(errClosed)
	}
	if p.pool != nil {
		return p.pool, nil
	}
	defer func() {
		if v := recover(); v != nil {
			pool, err = nil, notStarted(fmt.Errorf("%v", v))
		}
	}()
	if err := p.cache.Try(func() (err error) { p.pool, p.stop, err = p.launch(); return err }); err != nil {
		return nil, notStarted(err)
	}
	return p.pool, nil
}

// launch starts a sandbox. Compiling, where nothing is in the cache, is shared between the
// processors.
func (p *Engine) launch() (engine.Pool, context.CancelFunc, error) {
	ctx := experimental.WithCompilationWorkers(context.Background(), runtime.GOMAXPROCS(0))
	ctx = experimental.WithFunctionListenerFactory(ctx, &p.text)
	ctx, stop := context.WithCancel(experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(newMemory)))
	pool, err := sandbox(webassembly.Config{
		Context:  ctx,
		MaxIdle:  1,
		MaxTotal: 1,
		// The default is the host's root directory.
		FSConfig: wazero.NewFSConfig(),
		// The default is ours, which may be carrying a protocol.
		Stdout: io.Discard,
		Stderr: io.Discard,
		RuntimeConfig: wazero.NewRuntimeConfig().
			WithCompilationCache(p.cache.Get()).
			WithMemoryLimitPages(uint32(p.memory >> 16)).
			WithCloseOnContextDone(true),
	})
	if err != nil {
		stop()
		return nil, nil, err
	}
	return pool, stop, nil
}

// MemoryStep is up to how many bytes the memory of a sandbox grows by doubling.
const MemoryStep = 64 << 20

// memory is the linear memory of a WebAssembly module. Left to itself the engine copies it with each growth by a
// quarter, and the copies fill the heap with several times its cap. Here it is doubled at
// first, and then given all that it may have, of which the system counts only the pages that are written to.
// So the cap plus MemoryStep is all that it takes.
type memory struct {
	b   []byte
	max uint64
}

// newMemory is for experimental.MemoryAllocatorFunc: memory of at most so many bytes.
func newMemory(_, most uint64) experimental.LinearMemory { return &memory{max: most} }

func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(cap(m.b)) {
		have := max(size, 2*uint64(cap(m.b)))
		if have > MemoryStep {
			runtime.GC() // of an earlier sandbox nothing may be left
			have = max(size, m.max)
		}
		grown := make([]byte, size, have)
		copy(grown, m.b)
		m.b = grown
	}
	m.b = m.b[:size]
	return m.b
}

func (m *memory) Free() { m.b = nil }

// drop throws the sandbox away. Whatever still runs in it ends with an error.
func (p *Engine) drop() {
	p.mu.Lock()
	pool, stop := p.pool, p.stop
	p.pool, p.stop = nil, nil
	p.mu.Unlock()
	if pool == nil {
		return
	}
	stop()
	defer func() { recover() }() // a sandbox that has trapped may trap again when it is closed
	pool.Close()
}

// Document is a PDF: all its bytes, or where to read them.
type Document struct {
	Held []byte
	File *io.SectionReader // when Held is nil
}

// Read reads the pages asked for, one document at a time. When the time is over it gives those that
// it has.
func (p *Engine) Read(ctx context.Context, doc Document, job Job) (*Pages, error) {
	who := share.Of(ctx)
	if err := p.turn.Take(ctx, who, 1); err != nil {
		return nil, err
	}
	type result struct {
		pages *Pages
		err   error
	}
	done := make(chan result, 1)
	clock := make(chan func() time.Duration, 1) // when the engine has started
	var soFar atomic.Pointer[Pages]
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer p.turn.Give(who, 1)
		runtime.LockOSThread() // whose time is counted
		defer runtime.UnlockOSThread()
		pool, err := p.start()
		clock <- threadClock()
		var pages *Pages
		if err == nil {
			pages, err = p.document(reading, pool, doc, job, func(pages Pages) { soFar.Store(&pages) })
		}
		done <- result{pages, err}
	}()
	var used func() time.Duration
	select {
	case used = <-clock: // compiling may take seconds, which are not the document's fault
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	start := time.Now()
	for left := job.Time; left > 0; left = min(job.Time-used(), patience*job.Time-time.Since(start)) {
		select {
		case r := <-done:
			if ctx.Err() == nil || r.err == nil {
				return r.pages, r.err
			}
			done <- r
		case <-ctx.Done():
		case <-time.After(max(left, 10*time.Millisecond)):
			continue
		}
		break
	}
	cancel()
	p.mu.Lock()
	stop := p.stop
	p.mu.Unlock()
	if stop != nil {
		stop()
	}
	select {
	case <-done:
	case <-time.After(time.Second):
	}
	switch pages := soFar.Load(); {
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case pages == nil:
		return nil, &unreadable.Limit{What: "PDF", Resource: "time"}
	default:
		pages.Late = true
		return pages, nil
	}
}

// document opens one document in a new instance. It tells done of each page that is read.
func (p *Engine) document(ctx context.Context, pool engine.Pool, from Document, job Job, done func(Pages)) (pages *Pages, err error) {
	trapped := true
	defer func() {
		if v := recover(); v != nil {
			pages, err = nil, &unreadable.Damaged{What: "PDF", Why: fmt.Sprintf("the engine gave up (%v)", v)}
		}
		if trapped {
			p.drop()
		}
	}()
	instance, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return nil, notStarted(err)
	}
	held := mended(from.Held)
	open := &requests.OpenDocument{File: &held}
	if from.Held == nil {
		open = &requests.OpenDocument{FileReader: from.File, FileReaderSize: from.File.Size()}
	}
	doc, err := instance.OpenDocument(open)
	switch {
	case err == nil:
		pages, err = p.readPages(ctx, instance, doc.Document, job, done)
	case errors.Is(err, pdferrors.ErrPassword):
		err = &unreadable.Encrypted{What: "PDF"}
	case errors.Is(err, pdferrors.ErrSecurity):
		err = &unreadable.Unsupported{What: "an encrypted PDF", Why: "its kind of encryption is not known", Do: "Ask the user for a copy that is not encrypted."}
	default:
		// Not every error leaves a clean instance; a new sandbox is cheap.
		return nil, &unreadable.Damaged{What: "PDF", Why: pdfReason(err)}
	}
	var ours unreadable.Hinter
	if (err == nil || errors.As(err, &ours)) && instance.Close() == nil {
		trapped = false
	}
	return pages, err
}

func pdfReason(err error) string {
	switch {
	case errors.Is(err, pdferrors.ErrFormat):
		return "it has no readable structure"
	case errors.Is(err, pdferrors.ErrPage):
		return "its page cannot be read"
	case errors.Is(err, pdferrors.ErrFile), errors.Is(err, pdferrors.ErrUnknown), errors.Is(err, pdferrors.ErrUnexpected), errors.Is(err, pdferrors.ErrSuccess):
		return "it cannot be opened"
	}
	return "the engine gave up on it"
}

// readPages reads one page after the other, and calls done after each with all pages so far.
func (p *Engine) readPages(ctx context.Context, in engine.Pdfium, doc references.FPDF_DOCUMENT, job Job, done func(Pages)) (*Pages, error) {
	count, err := in.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc})
	if err != nil {
		return nil, err
	}
	if count.PageCount < 1 {
		return nil, &unreadable.Damaged{What: "PDF", Why: "it has no pages"}
	}
	out := &Pages{Total: count.PageCount}
	if out.Asked, err = job.Pages(out.Total); err != nil {
		return nil, err
	}
	text, images, scans, failures := int64(0), int64(0), 0, 0
	// fail notes a page that can't be read, and ends the document after some of them, but for those that are not there.
	fail := func(page *Page, err error) error {
		page.Failed = true
		switch failures++; {
		case ctx.Err() != nil:
			return ctx.Err()
		case failures > 4 && !errors.Is(err, pdferrors.ErrPage):
			return &unreadable.Damaged{What: "PDF", Why: pdfReason(err)}
		}
		return nil
	}
	for _, n := range out.Asked {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		page := Page{Number: n, Objects: -1}
		loaded, err := in.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: doc, Index: n - 1})
		if err != nil {
			if err := fail(&page, err); err != nil {
				return nil, err
			}
			out.Pages = append(out.Pages, page)
			continue
		}
		at := requests.Page{ByReference: &loaded.Page}
		if err := p.readPage(ctx, in, doc, at, &page); err != nil {
			if err := fail(&page, err); err != nil {
				return nil, err
			}
		}
		scan := page.NoText && page.DrawnOn() && !page.Failed && !job.TextOnly
		if page.Text != "" && job.Render { // it is given even where the time is over before it is drawn
			text := *out
			text.Pages = append(slices.Clip(out.Pages), page)
			text.Pages[len(out.Pages)].Failed = true
			done(text)
		}
		if (job.Render || scan) && (images >= job.ImageMax*pageImageBytes || scans >= scannedPages && !job.Render) {
			in.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page})
			break // its image belongs to the next answer
		}
		if job.Render || scan {
			if scan {
				scans++
			}
			if err := drawPage(ctx, in, doc, at, job, &page); err != nil {
				if err := fail(&page, err); err != nil {
					return nil, err
				}
			} else {
				images += int64(len(page.Image.Base64))
			}
		}
		if len(page.looks) > 0 {
			page.Text += appearances(in, doc, at, n, page.looks)
		}
		in.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page})
		out.Pages = append(out.Pages, page)
		done(*out)
		if text += int64(len(page.Text)); text > job.TextBytes {
			break
		}
	}
	return out, nil
}

// readPage takes the page's text, and behind it the words of annotations and form fields.
func (p *Engine) readPage(ctx context.Context, in engine.Pdfium, doc references.FPDF_DOCUMENT, at requests.Page, page *Page) error {
	text, err := p.pageText(in, at)
	if err != nil {
		return err
	}
	page.Text = cleanPageText(text)
	page.NoText = page.Text == ""
	if page.NoText {
		if c, err := in.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: at}); err == nil {
			page.Objects = c.Count
		}
	}
	count, err := in.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: at})
	if err != nil || count.Count <= 0 {
		return err
	}
	page.Annotations = count.Count
	return withForms(ctx, func() error {
		a := &annotations{in: in, at: at, doc: doc}
		if err := a.readAll(ctx, count.Count); err != nil {
			return err
		}
		page.Overlaid, page.Unsaid, page.looks = a.drawn, a.mute > 0, a.looks
		if said := a.String(); said != "" {
			page.Text = strings.TrimPrefix(page.Text+"\n"+said, "\n")
		}
		return nil
	})
}

// drawPage makes the page's image, with its annotations and filled fields.
func drawPage(ctx context.Context, in engine.Pdfium, doc references.FPDF_DOCUMENT, at requests.Page, job Job, page *Page) error {
	q := &requests.RenderPageInPixels{Page: at, Width: job.Edge, Height: job.Edge}
	draw := func() error {
		img, err := in.RenderPageInPixels(q)
		if err != nil {
			return err
		}
		defer img.Cleanup()
		b := img.Result.RenderedImage.Bounds()
		m, err := image.Fit(ctx, img.Result.RenderedImage, 1, max(b.Dx(), b.Dy()), job.ImageMax)
		if err != nil {
			return err
		}
		if m == nil {
			return &unreadable.Limit{What: "PDF", Resource: "bytes of base64 for a page image", Max: job.ImageMax}
		}
		page.Image = &PageImage{Page: page.Number, Width: m.Width, Height: m.Height, Format: m.Format, MediaType: "image/" + m.Format,
			Base64: base64.StdEncoding.EncodeToString(m.Data)}
		return nil
	}
	if page.Annotations == 0 {
		return draw()
	}
	q.RenderForm, q.Document, q.RenderFlags = true, &doc, enums.FPDF_RENDER_FLAG_ANNOT
	return withForms(ctx, draw)
}
