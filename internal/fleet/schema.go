package fleet

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// version is that of the tables. A newer one is refused.
const version = 1

// schema makes the fleet's own tables. The catalog of the history has its own.
//
// The tables of leases and locks are unlogged: they cost no write to the log, and PostgreSQL empties them when it comes back from a crash
// or on another machine. So no lease and no lock is ever there again that somebody may have lost, and since says when that was.
const schema = `
CREATE TABLE IF NOT EXISTS fleet (version integer NOT NULL);

CREATE UNLOGGED TABLE IF NOT EXISTS since (at timestamptz NOT NULL);
CREATE UNLOGGED TABLE IF NOT EXISTS gateway (
	id    text PRIMARY KEY,
	name  text NOT NULL,
	start timestamptz NOT NULL,
	lease timestamptz NOT NULL -- its end
);
CREATE UNLOGGED TABLE IF NOT EXISTS lock (
	key     bytea NOT NULL, -- SHA-256
	gateway text NOT NULL REFERENCES gateway ON DELETE CASCADE,
	call    bigint NOT NULL,
	shared  boolean NOT NULL,
	holder  text NOT NULL,
	PRIMARY KEY (key, gateway, call)
);
CREATE INDEX IF NOT EXISTS lock_of ON lock (gateway, call);

-- Both functions run one after another in the whole fleet.
--
-- begin_lease makes the gateway me, and removes those whose leases are over. One that is saving at this moment is skipped: its save is
-- valid, and it is void after that.
CREATE OR REPLACE FUNCTION begin_lease(me text, called text, seconds float8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(1836413804, hashtext(current_schema));
	DELETE FROM gateway WHERE id IN (SELECT id FROM gateway WHERE lease <= clock_timestamp() FOR UPDATE SKIP LOCKED);
	INSERT INTO gateway VALUES (me, called, clock_timestamp(), clock_timestamp() + make_interval(secs => seconds));
END $$;

-- lock_all takes the locks keys for a call of the gateway me, all or none. Before that it gives those of the calls freed back. It answers
-- '' for taken, 'fenced', or who is in the way. Leases have so many seconds.
CREATE OR REPLACE FUNCTION lock_all(me text, n bigint, keys bytea[], share boolean[], held text, freed bigint[], seconds float8)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	who text;
BEGIN
	PERFORM pg_advisory_xact_lock(1836413804, hashtext(current_schema));
	DELETE FROM lock WHERE gateway = me AND call = ANY (freed);
	IF NOT EXISTS (SELECT FROM gateway WHERE id = me AND lease > clock_timestamp()) THEN
		RETURN 'fenced';
	END IF;
	-- The tables were emptied: those who had a lock may be at work until their leases are over.
	INSERT INTO since SELECT clock_timestamp() WHERE NOT EXISTS (SELECT FROM since);
	IF EXISTS (SELECT FROM since WHERE at + make_interval(secs => seconds) > clock_timestamp()) THEN
		RETURN 'the database, which has begun anew and waits for the leases of before';
	END IF;
	DELETE FROM gateway WHERE id IN (SELECT id FROM gateway WHERE lease <= clock_timestamp() AND id IN (
		SELECT l.gateway FROM lock l WHERE l.key = ANY (keys)) FOR UPDATE SKIP LOCKED);
	SELECT g.name || ', ' || l.holder INTO who
		FROM unnest(keys, share) k (key, shared) JOIN lock l ON l.key = k.key AND NOT (l.shared AND k.shared) JOIN gateway g ON g.id = l.gateway LIMIT 1;
	IF who IS NOT NULL THEN
		RETURN who;
	END IF;
	INSERT INTO lock SELECT k.key, me, n, k.shared, held FROM unnest(keys, share) k (key, shared);
	RETURN '';
END $$;
` + fileSchema + headSchema

// migrate makes the tables where they are not there, and refuses those of another version. An account that may not make tables does with
// those that are there.
func migrate(ctx context.Context, db *sql.DB) error {
	v, err := versionOf(ctx, db)
	if err != nil || v == version {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it is committed, or nothing is to be kept
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(1836413805, hashtext(current_schema))"); err != nil {
		return err
	}
	if v, err = versionOf(ctx, tx); err != nil || v == version {
		return err
	}
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return fmt.Errorf("making the tables of the fleet: %w", err)
	}
	// Nobody has had a lease before.
	if _, err := tx.ExecContext(ctx, "INSERT INTO since VALUES ('-infinity'); INSERT INTO fleet VALUES (1)"); err != nil {
		return err
	}
	return tx.Commit()
}

// VersionError: the tables of the fleet are of a newer program.
type VersionError struct{ Is, Knows int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the tables of the fleet are of version %d, and this program knows up to %d", e.Is, e.Knows)
}

// versionOf is 0 where there are no tables.
func versionOf(ctx context.Context, q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) (v int, err error) {
	var there bool
	if err = q.QueryRowContext(ctx, "SELECT coalesce(to_regclass(quote_ident(current_schema()) || '.fleet') IS NOT NULL, false)").Scan(&there); err != nil || !there {
		return 0, err
	}
	err = q.QueryRowContext(ctx, "SELECT version FROM fleet").Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err == nil && v > version {
		err = &VersionError{v, version}
	}
	return v, err
}
