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
-- A row is the locks of one call. Of each key it has the first eight bytes of its SHA-256: calls of two that are alike wait for each other.
CREATE UNLOGGED TABLE IF NOT EXISTS lock (
	gateway text NOT NULL REFERENCES gateway ON DELETE CASCADE,
	call    bigint NOT NULL,
	alone   bigint[] NOT NULL,
	shared  bigint[] NOT NULL,
	holder  text NOT NULL,
	PRIMARY KEY (gateway, call)
);

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

-- lock_all takes the locks of the keys one, and shares those of the keys many, for the call n of the gateway me, all or none. Before that
-- it gives those of the calls freed back. It answers '' for taken, 'fenced', or who is in the way. Leases have so many seconds.
CREATE OR REPLACE FUNCTION lock_all(me text, n bigint, one bigint[], many bigint[], held text, freed bigint[], seconds float8)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	begun timestamptz;
	others text[];
	who text;
BEGIN
	PERFORM pg_advisory_xact_lock(1836413804, hashtext(current_schema));
	DELETE FROM lock WHERE gateway = me AND call = ANY (freed);
	IF NOT EXISTS (SELECT FROM gateway WHERE id = me AND lease > clock_timestamp()) THEN
		RETURN 'fenced';
	END IF;
	SELECT at INTO begun FROM since;
	IF NOT FOUND THEN -- the tables were emptied
		INSERT INTO since VALUES (clock_timestamp()) RETURNING at INTO begun;
	END IF;
	IF begun + make_interval(secs => seconds) > clock_timestamp() THEN -- those who had a lock may be at work until their leases are over
		RETURN 'the database, which has begun anew and waits for the leases of before';
	END IF;
	SELECT array_agg(l.gateway) INTO others FROM lock l WHERE l.alone && (one || many) OR l.shared && one;
	IF others IS NOT NULL THEN
		DELETE FROM gateway WHERE id IN (SELECT id FROM gateway WHERE id = ANY (others) AND lease <= clock_timestamp() FOR UPDATE SKIP LOCKED);
		SELECT g.name || ', ' || l.holder INTO who FROM lock l JOIN gateway g ON g.id = l.gateway
			WHERE l.gateway = ANY (others) AND (l.alone && (one || many) OR l.shared && one) LIMIT 1;
		IF who IS NOT NULL THEN
			RETURN who;
		END IF;
	END IF;
	INSERT INTO lock VALUES (me, n, one, many, held);
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
	var schemas string
	var there bool
	if err := db.QueryRowContext(ctx, "SELECT current_setting('search_path'), current_schema() IS NOT NULL").Scan(&schemas, &there); err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("the schema of search_path=%s is not there, or its account may not use it; the owner of the database makes one with CREATE SCHEMA and lets the account in with GRANT USAGE", schemas)
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
