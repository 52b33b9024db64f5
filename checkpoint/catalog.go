package checkpoint

import (
	"context"
	"time"
)

// A catalog is the database that has the rows of a store: a file of SQLite (sqlite.go), or a schema of a server that many machines share
// (postgres.go). The rest of the package uses either by the same statements, with "?" for an argument, and does not know which it is.
//
// Of all processes that have the catalog open one at a time is in a writing transaction that is synced. Whoever begins one waits for the others,
// and gets ErrBusy if that takes too long. One that is not synced notes something of one operation, and goes by no other row: it may go
// beside another one.
type catalog interface {
	// connect opens the catalog. There is one connection that writes, so that who has it may write, and some that read.
	connect() (write, read *pool, err error)
	// format gives the number of the format of the tables, 0 where there are none. steps has the statements that make tables of
	// another format ours, by its number.
	format(ctx context.Context, q querier) (int, error)
	steps() map[int]string
	// opened is called once the tables are there.
	opened(ctx context.Context, q querier) error
	// again takes the error of an attempt to open the catalog, and reports whether another attempt is worth it. since is the time since
	// the first attempt.
	again(err error, since time.Duration) (bool, error)

	// inPlace gives a *GoneError unless the open catalog is still the one that others find.
	inPlace() error
	// ready is called before the connection that writes is used. It gives the error why nothing can be accepted at present.
	ready(ctx context.Context, c *conn) error
	// begin begins a writing transaction; end commits it, or takes it back. A synced one is durable when end returns nil; another one
	// with the next that is synced, of whichever process. A *SyncError of end says that the transaction may be there or not. With any
	// other error it is not there.
	begin(ctx context.Context, c *conn, synced bool) (end func(commit bool) error, err error)
	// look begins a transaction that reads from one snapshot; "COMMIT" ends it.
	look(ctx context.Context, c *conn) error
	// failed gives the error of a transaction as the package's own, and takes note where that says that the catalog is damaged.
	failed(err error) error

	// size gives the bytes that the store takes of Options.MaxBytes, and those of the log beside it. grown gives the former in the
	// transaction of a save, which has added about so many.
	size(ctx context.Context, q querier) (used, log int64, err error)
	grown(ctx context.Context, tx *tx, added int64) (used int64, err error)
	// shrink gives back some of what a removal has freed. more says that there is more.
	shrink(ctx context.Context, tx *tx) (more bool, err error)
	// scour sees to it that no byte stays of rows that were deleted.
	scour(ctx context.Context, c *conn) error
	// check looks whether the database itself is sound, and gives what is wrong with it.
	check(ctx context.Context, q querier) (faults []string, err error)
	// beside lists directories in which a damaged catalog lies that this one took the place of.
	beside() ([]string, error)
	// dump writes the rows as they are at this moment to an empty file, as a catalog of SQLite, or gives errNoFile.
	dump(ctx context.Context, file string) error
	// clean waits until no other gateway runs retention on the store, and keeps them off until done is called.
	clean(ctx context.Context) (done func(), err error)
	close() error
}
