package fleet

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"moltisfs/internal/audit"
	"moltisfs/internal/outage"
)

// headSchema makes the table of the ends of audit logs, as machines told them. A row is never changed. Another hash for the same record is another row:
// then one of the two is not true.
const headSchema = `
CREATE TABLE IF NOT EXISTS head (
	machine text NOT NULL,
	chain   text NOT NULL,
	seq     bigint NOT NULL,
	hash    bytea NOT NULL,
	at      timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (machine, chain, seq, hash)
);
`

// headsEvery bounds what a gateway adds to the table: two rows a minute.
const headsEvery = time.Minute

// SendHeads has the last records of both chains of a machine's audit log put on record, where they are new: once in a minute, and at Close.
// heads gives them, as audit.Log.Heads does. machine names the log: it SHOULD be the same for every process that writes it, and for no
// other log.
func (g *Gateway) SendHeads(machine string, heads func() ([]audit.Head, error)) {
	g.sendHeads(headsEvery, machine, heads)
}

func (g *Gateway) sendHeads(every time.Duration, machine string, heads func() ([]audit.Head, error)) {
	sent := map[string]audit.Seen{}
	send := func() error {
		now, err := heads()
		for _, h := range now {
			if err != nil || h.Number == 0 || sent[h.Chain] == h.Seen {
				continue
			}
			if err = g.record(machine, h); err == nil {
				sent[h.Chain] = h.Seen
			}
		}
		return err
	}
	g.done.Go(func() {
		again := time.NewTicker(every)
		defer again.Stop()
		for closing := false; !closing; {
			select {
			case <-again.C:
			case <-g.open.Done():
				closing = true
			}
			err := g.Fenced() // else a close would wait for a database that is gone
			if err == nil {
				err = send()
			}
			if err != nil {
				g.logger.Warn("the end of the audit log was not put on record", "gateway", g.name, "err", err)
			}
		}
	})
}

func (g *Gateway) record(machine string, h audit.Head) error {
	return files{g: g, q: g.db}.exec("INSERT INTO head (machine, chain, seq, hash) VALUES ($1, $2, $3, decode($4, 'hex')) ON CONFLICT DO NOTHING",
		machine, h.Chain, int64(h.Number), h.Hash)
}

// mostHeads bounds the heads of one chain that are looked at: the newest. Each vouches for all records before it.
const mostHeads = 200_000

// Heads gives the last records of one chain of a machine's audit log that are on record, for audit.Known.
func (g *Gateway) Heads(ctx context.Context, machine, chain string) ([]audit.Seen, error) {
	seen, err := query(ctx, g.db, func(r *sql.Rows, s *audit.Seen) error { return r.Scan(&s.Number, &s.Hash) },
		"SELECT seq, encode(hash, 'hex') FROM head WHERE machine = $1 AND chain = $2 ORDER BY seq DESC LIMIT $3", machine, chain, mostHeads)
	return seen, cmp.Or(ctx.Err(), outage.OfDatabase(err))
}
