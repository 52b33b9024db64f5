package checkpoint

import "context"

// Sender is a Shipper without its loop: tests say when it sends.
func Sender(local, remote *DB) *Shipper { return &Shipper{local: local, remote: remote} }

// Round sends all that may be sent.
func (s *Shipper) Round(ctx context.Context) error { return s.round(ctx) }

// BadRound is a Round with a fault, for tests: it takes each operation for sent before the remote store has it.
func (s *Shipper) BadRound(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	c := &copier{from: s.local, to: s.remote, who: anybody, evict: true, marks: true}
	all, err := column[int64](ctx, s.local.r, "SELECT op FROM unsent WHERE op NOT IN (SELECT op FROM open_op) ORDER BY op")
	for _, seq := range all {
		if err != nil {
			return err
		}
		var r *record
		err = s.local.view(ctx, func(h *history) (err error) {
			if r, err = c.take(ctx, h, seq, false); err == nil {
				r.draw, err = one[int64](ctx, h.q, "SELECT draw FROM unsent WHERE op=?", seq)
			}
			return err
		})
		if err == nil {
			err = s.sent(ctx, r)
		}
		if err == nil {
			err = c.put(ctx, r)
		}
	}
	return err
}
