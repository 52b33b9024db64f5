package readers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
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
)

// inSandbox is the longest PDF that is copied into the sandbox; of a longer one it asks for the parts it needs.
const inSandbox = 64 << 20

// pdfium runs PDFium in a WebAssembly sandbox: no file system, no network, no clock to speak of, a cap on memory. It is
// started by the first PDF. Every document gets an instance of its own. After a trap, or when a call had to be cut off, the
// whole sandbox is thrown away; the compiled code stays.
type pdfium struct {
	config Config
	cache  *codeCache
	turn   chan struct{} // held while a document is read

	mu     sync.Mutex // guards the rest; never held while PDFium runs
	pool   engine.Pool
	stop   context.CancelFunc
	closed bool
}

// engineStart says that the engine could not be started, as opposed to a bad document.
type engineStart struct{ err error }

func (e *engineStart) Error() string { return "starting the PDF engine: " + e.err.Error() }
func (e *engineStart) Unwrap() error { return e.err }

var errClosed = errors.New("the readers are closed")

func newPDFium(c Config, cache *codeCache) *pdfium {
	return &pdfium{config: c, cache: cache, turn: make(chan struct{}, 1)}
}

func (p *pdfium) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.drop()
}

// start returns the running sandbox.
func (p *pdfium) start() (pool engine.Pool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, &engineStart{errClosed}
	}
	if p.pool != nil {
		return p.pool, nil
	}
	defer func() {
		if v := recover(); v != nil {
			pool, err = nil, &engineStart{fmt.Errorf("%v", v)}
		}
	}()
	pool, stop, err := p.launch()
	if err != nil {
		pool, stop, err = p.launch() // what could only not be stored is in memory now
	}
	if err != nil {
		p.cache.leaveDisk()
		pool, stop, err = p.launch()
	}
	if err != nil {
		return nil, &engineStart{err}
	}
	p.cache.keep()
	p.pool, p.stop = pool, stop
	return pool, nil
}

// launch starts a sandbox. Compiling, where nothing is in the cache, is shared between the processors.
func (p *pdfium) launch() (engine.Pool, context.CancelFunc, error) {
	ctx := experimental.WithCompilationWorkers(context.Background(), runtime.GOMAXPROCS(0))
	ctx, stop := context.WithCancel(experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(newSandboxRoom)))
	pool, err := webassembly.Init(webassembly.Config{
		Context:  ctx,
		MaxIdle:  1,
		MaxTotal: 1,
		// The default is the host's root directory.
		FSConfig: wazero.NewFSConfig(),
		// The default is ours, which may be carrying a protocol.
		Stdout: io.Discard,
		Stderr: io.Discard,
		RuntimeConfig: wazero.NewRuntimeConfig().
			WithCompilationCache(p.cache.get()).
			WithMemoryLimitPages(uint32(p.config.PDFMemory >> 16)).
			WithCloseOnContextDone(true),
	})
	if err != nil {
		stop()
		return nil, nil, err
	}
	return pool, stop, nil
}

// ready starts the sandbox under the caller's context alone: compiling it without a cache takes seconds, which are not the document's fault and
// must not count against its deadline. An engine that does not start is found out by run.
func (p *pdfium) ready(ctx context.Context) error {
	started := make(chan struct{})
	go func() {
		defer close(started)
		_, _ = p.start()
	}()
	select {
	case <-started:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drop throws the sandbox away. Whatever still runs in it ends with an error.
func (p *pdfium) drop() {
	p.mu.Lock()
	pool, stop := p.pool, p.stop
	p.pool, p.stop = nil, nil
	p.mu.Unlock()
	if pool == nil {
		return
	}
	stop()
	defer func() { recover() }() // closing what has trapped may trap again
	pool.Close()
}

// run reads the pages asked for.
func (p *pdfium) run(ctx context.Context, f *file, job pdfJob) (*pdfPages, error) {
	var data []byte
	if f.Size >= 0 && f.Size <= inSandbox {
		raw, err := f.all(ctx, inSandbox, "PDF", true)
		if err != nil {
			return nil, err
		}
		data = raw
		if f.ended {
			data = bytes.Clone(raw) // the head goes back to its pool even if the sandbox is still busy
		}
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type result struct {
		pages *pdfPages
		err   error
	}
	done := make(chan result, 1)
	var soFar atomic.Pointer[pdfPages]
	section := f.section()
	go func() {
		defer func() { <-p.turn }()
		pages, err := p.document(ctx, data, section, job, func(pages pdfPages) { soFar.Store(&pages) })
		done <- result{pages, err}
	}()
	select {
	case r := <-done:
		if ctx.Err() == nil || r.err == nil {
			return r.pages, r.err
		}
		done <- r
	case <-ctx.Done():
	}
	// Compiling cannot be cut off, but it ends; a document can.
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
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, ctx.Err()
	case pages == nil:
		return nil, &Limit{What: "PDF", Resource: "time"}
	default:
		pages.Late = true
		return pages, nil
	}
}

// document opens one document in a new instance. It tells done of each page that is read.
func (p *pdfium) document(ctx context.Context, data []byte, section *io.SectionReader, job pdfJob, done func(pdfPages)) (pages *pdfPages, err error) {
	pool, err := p.start()
	if err != nil {
		return nil, err
	}
	trapped := true
	defer func() {
		if v := recover(); v != nil {
			pages, err = nil, &Damaged{What: "PDF", Why: fmt.Sprintf("the engine gave up (%v)", v)}
		}
		if trapped {
			p.drop()
		}
	}()
	instance, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return nil, &engineStart{err}
	}
	open := &requests.OpenDocument{File: &data}
	if data == nil {
		open = &requests.OpenDocument{FileReader: section, FileReaderSize: section.Size()}
	}
	doc, err := instance.OpenDocument(open)
	switch {
	case err == nil:
	case errors.Is(err, pdferrors.ErrPassword):
		trapped = false
		instance.Close()
		return nil, &Encrypted{What: "PDF"}
	case errors.Is(err, pdferrors.ErrSecurity):
		trapped = false
		instance.Close()
		return nil, &Unsupported{What: "an encrypted PDF", Why: "its kind of encryption is not known", Do: "Ask the user for a copy that is not encrypted."}
	default:
		// Not every error leaves a clean instance; a new sandbox is cheap.
		return nil, &Damaged{What: "PDF", Why: pdfReason(err)}
	}
	pages, err = readPages(ctx, instance, doc.Document, job, done)
	var ours Hinter
	if err == nil || errors.As(err, &ours) {
		if instance.Close() == nil {
			trapped = false
		}
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

// readPages reads one page after the other, and tells done after each what there is.
func readPages(ctx context.Context, in engine.Pdfium, doc references.FPDF_DOCUMENT, job pdfJob, done func(pdfPages)) (*pdfPages, error) {
	count, err := in.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc})
	if err != nil {
		return nil, err
	}
	if count.PageCount < 1 {
		return nil, &Damaged{What: "PDF", Why: "it has no pages"}
	}
	out := &pdfPages{Total: count.PageCount}
	if out.Asked, err = parsePages(job.Pages, out.Total); err != nil {
		return nil, err
	}
	text, images, scans, failures := int64(0), int64(0), 0, 0
	for _, n := range out.Asked {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		page := pdfPage{Number: n, Objects: -1}
		loaded, err := in.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: doc, Index: n - 1})
		if err != nil {
			if ctx.Err() != nil || !errors.Is(err, pdferrors.ErrPage) && failures > 3 {
				return nil, broken(ctx, err)
			}
			failures++
			page.Failed = true
			out.Pages = append(out.Pages, page)
			continue
		}
		at := requests.Page{ByReference: &loaded.Page}
		if err := readPage(ctx, in, doc, at, &page); err != nil {
			if failures++; ctx.Err() != nil || failures > 4 {
				return nil, broken(ctx, err)
			}
			page.Failed = true
		}
		scan := page.NoText && page.drawnOn() && !page.Failed
		if (job.Render || scan) && (images >= job.ImageMax*pageImageBytes || scans >= scannedPages && !job.Render) {
			in.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page})
			break // its image belongs to the next answer
		}
		if job.Render || scan {
			if scan {
				scans++
			}
			if err := drawPage(ctx, in, doc, at, job, &page); err != nil {
				if failures++; ctx.Err() != nil || failures > 3 {
					return nil, broken(ctx, err)
				}
				page.Failed = true
			} else {
				images += int64(len(page.Image.Base64))
			}
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

// readPage takes the page's text, and behind it what annotations and form fields say.
func readPage(ctx context.Context, in engine.Pdfium, doc references.FPDF_DOCUMENT, at requests.Page, page *pdfPage) error {
	text, err := pageText(in, at)
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
		page.Overlaid, page.Unsaid = a.drawn, len(a.mute) > 0
		if said := a.String(); said != "" {
			page.Text = strings.TrimPrefix(page.Text+"\n"+said, "\n")
		}
		return nil
	})
}

// drawPage makes the page's image, with its annotations and filled fields.
func drawPage(ctx context.Context, in engine.Pdfium, doc references.FPDF_DOCUMENT, at requests.Page, job pdfJob, page *pdfPage) error {
	q := &requests.RenderPageInPixels{Page: at, Width: job.Edge, Height: job.Edge}
	draw := func() error {
		img, err := in.RenderPageInPixels(q)
		if err != nil {
			return err
		}
		defer img.Cleanup()
		page.Image, err = pageImage(page.Number, img.Result.RenderedImage, job.ImageMax)
		return err
	}
	if page.Annotations == 0 {
		return draw()
	}
	q.RenderForm, q.Document, q.RenderFlags = true, &doc, enums.FPDF_RENDER_FLAG_ANNOT
	return withForms(ctx, draw)
}

// broken says why the sandbox stopped.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w", &Damaged{What: "PDF", Why: pdfReason(err)})
}
