package readers

import "context"

func (r *Readers) nativePDF(ctx context.Context, f *file, job pdfJob) (*pdfPages, error) {
	return nil, &Unsupported{What: "a PDF", Why: "x"}
}
