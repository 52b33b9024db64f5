package checkpoint

import "context"

// Sender is a Shipper without its loop: tests say when it sends.
func Sender(local, remote *DB) *Shipper { return &Shipper{local: local, remote: remote, cut: NotCut} }

// NotCut is for Ship.
func NotCut() error { return nil }

// End is Close without its bound: then nobody sends any more.
func (s *Shipper) End() error {
	s.stop()
	return <-s.over
}

// Round sends all that may be sent.
func (s *Shipper) Round(ctx context.Context) error { return s.round(ctx) }

// BadRound is a Round with a fault, for tests: it takes each operation for sent before the remote store has it.
func (s *Shipper) BadRound(ctx context.Context) error {
	if _, err := s.begin(ctx); err != nil {
		return err
	}
	all, err := column[int64](ctx, s.local.r, "SELECT op FROM unsent WHERE op NOT IN (SELECT op FROM open_op) ORDER BY op")
	for _, seq := range all {
		c := &copier{from: s.local, to: s.remote, who: anybody, through: seq - 1}
		if err == nil {
			err = s.local.write(ctx, "bad", false, func(ctx context.Context, tx *tx) error { return tx.exec(ctx, "DELETE FROM unsent WHERE op=?", seq) })
		}
		if err == nil {
			err = c.copy(ctx, seq)
		}
	}
	return err
}
