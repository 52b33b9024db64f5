package checkpoint

// All that is of PostgreSQL: how it is reached, its transactions and its errors. The tables are those of schema.go.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"moltisfs/internal/outage"
)

// UnreachableError: the database, or the store of large contents, can't be reached, or the connection broke. Nothing is broken that would
// not mend: all works again when it is back. What was to be saved is not there, and the change must not be made.
type UnreachableError = outage.Error

// SettingError: a setting of the database breaks a promise of the store. Change says how to set it.
type SettingError struct{ Setting, Have, Change string }

func (e *SettingError) Error() string {
	return fmt.Sprintf("the database has %s=%s: %s", e.Setting, e.Have, e.Change)
}

// postgres is the catalog of a fleet: the tables are in the schema that is current on the connections of config. Several gateways have it
// open, and each transaction that writes holds one lock of the server, as "BEGIN IMMEDIATE" does in SQLite; but for those that are not synced.
type postgres struct {
	config *pgx.ConnConfig
	guard  func(ctx context.Context, row func(query string, args ...any) *sql.Row) error
	read   *pool
	logger *slog.Logger
}

// newPostgres takes the address of a database, "postgres://…". There is no password in it: that comes from PGPASSWORD, a passfile or a
// certificate.
func newPostgres(o Options) (*postgres, error) {
	bad := func(why string) error { return &BadOpError{"", "the address of the database " + why} }
	u, err := url.Parse(o.Database)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, bad("is not one of postgres://")
	}
	_, secret := u.User.Password()
	for _, key := range []string{"password", "sslpassword"} {
		secret = secret || u.Query().Has(key)
	}
	if secret {
		return nil, bad("must have no password; give it in PGPASSWORD, or name a file with passfile=")
	}
	if o.Blobs == nil {
		return nil, bad("needs a store of large contents beside it that all of its gateways share")
	}
	config, err := pgx.ParseConfig(o.Database)
	if err != nil {
		return nil, bad(err.Error())
	}
	// A server that does not answer any more is found out: by the system when nothing is confirmed for that long.
	dial := net.Dialer{Control: giveUpAfter(20 * time.Second),
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}}
	config.DialFunc = dial.DialContext
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	for setting, value := range map[string]string{"lock_timeout": busyTimeout, "application_name": "moltis-fs",
		// The statements are written so that each row is found by an index, the only way that SQLite has. Until the server has counted the
		// rows it would rather go through whole tables, which takes fifty times as long.
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off", "work_mem": "64MB"} {
		if config.RuntimeParams[setting] == "" {
			config.RuntimeParams[setting] = value
		}
	}
	return &postgres{config: config, guard: o.Guard, logger: o.Logger}, nil
}

func (p *postgres) String() string {
	return fmt.Sprintf("in database %s on %s", p.config.Database, p.config.Host)
}

func (p *postgres) connect() (write, read *pool, err error) {
	open := func(size int) *pool {
		c := stdlib.GetConnector(*p.config, stdlib.OptionAfterConnect(fit))
		pool := newPool(sql.OpenDB(pgConnector{c}), size)
		pool.compiles = true
		return pool
	}
	p.read = open(8)
	return open(1), p.read, nil
}

func (p *postgres) close() error { return nil }

func (p *postgres) again(err error, _ time.Duration) (bool, error) { return false, err }

// fit looks whether a new connection keeps the store's promises.
func fit(ctx context.Context, c *pgx.Conn) error {
	var version int
	var fsync, commit, encoding string
	var schema *string
	err := c.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('fsync'),
		current_setting('synchronous_commit'), current_setting('server_encoding'), current_schema()::text`).
		Scan(&version, &fsync, &commit, &encoding, &schema)
	switch {
	case err != nil:
		err = pgError(ctx, err, c.IsClosed())
	case version < 13_00_00:
		err = &VersionError{"PostgreSQL", strconv.Itoa(version / 1_00_00), "version 13 or later"}
	case fsync == "off":
		err = &SettingError{"fsync", fsync, "it loses what it confirmed; set fsync = on in postgresql.conf"}
	case commit == "off":
		err = &SettingError{"synchronous_commit", commit,
			"it loses what it confirmed last; ALTER ROLE … SET synchronous_commit = on for the account, and likewise ALTER DATABASE"}
	case encoding != "UTF8":
		err = &SettingError{"server_encoding", encoding, "names need UTF8; CREATE DATABASE … ENCODING 'UTF8'"}
	case schema == nil:
		err = &SettingError{"search_path", c.Config().RuntimeParams["search_path"], "there is no such schema; CREATE SCHEMA first"}
	}
	if err != nil {
		c.Close(ctx) //nolint:errcheck // it is not used
	}
	return err
}

func (p *postgres) format(ctx context.Context, q querier) (int, error) {
	// As a row: to_regclass may not have heard yet of what another process has made while this one waited for the lock.
	there, err := one[bool](ctx, q, "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname='meta' AND relnamespace=current_schema()::regnamespace)")
	if err != nil || !there {
		return 0, err
	}
	v, err := one[int](ctx, q, "SELECT v FROM meta WHERE k='format'")
	if err == nil && v == 0 {
		err = &VersionError{"the schema of the database", "in use for something else", "an empty one"}
	}
	return v, err
}

// pgWords turns the words of SQLite in schema.go into those of PostgreSQL, and pgIndex adds the number to an index, in which SQLite has it
// anyway.
var (
	pgWords = strings.NewReplacer("BLOB", "BYTEA", "INTEGER PRIMARY KEY", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
		"INTEGER", "BIGINT", " WITHOUT ROWID", "", "ON turn(session)", "ON turn(session, id)", "ON turn(name, session)", "ON turn(name, session, id)")
	pgIndex = regexp.MustCompile(`CREATE INDEX (op_\w+) ON op\(([^)]*)\)`)
)

func (p *postgres) steps() map[int]string {
	tables := pgIndex.ReplaceAllString(pgWords.Replace(schema), "CREATE INDEX $1 ON op($2, seq)")
	return map[int]string{0: tables + fmt.Sprintf("INSERT INTO meta(k, v) VALUES('format', %d), ('used', 0)", format)}
}

func (p *postgres) opened(context.Context, querier) error { return nil }

func (p *postgres) inPlace() error { return nil }

func (p *postgres) ready(context.Context, *conn) error { return nil }

// The locks of the server that a store takes, each in its own schema.
const (
	lockOfWriter  = "7411, hashtext(current_schema()::text)"
	lockOfCleaner = "7412, hashtext(current_schema()::text)"
)

// begin: what comes before the lock must not look at a row, else it would be a look at what was before the transactions that it waited for.
// A process that stops in the midst holds up all others: the server ends its transaction after a minute. One that is not synced locks the rows that
// it changes, and waits for those only.
func (p *postgres) begin(ctx context.Context, c *conn, synced bool) (end func(commit bool) error, err error) {
	text := "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL idle_in_transaction_session_timeout='60s'; "
	if synced {
		text += "SELECT pg_advisory_xact_lock(" + lockOfWriter + ")"
	} else {
		text += "SET LOCAL synchronous_commit=off"
	}
	if err := start(ctx, c, text); err != nil {
		return nil, err
	}
	row := func(query string, args ...any) *sql.Row { return c.QueryRowContext(ctx, query, args...) }
	return func(commit bool) error {
		var err error
		if commit && p.guard != nil {
			err = p.guard(ctx, row)
		}
		if commit && err == nil && c.transaction() != 'T' { // the server would take COMMIT for ROLLBACK, and say nothing
			err = errors.New("a statement of the transaction had failed")
		}
		if !commit || err != nil {
			c.Conn.ExecContext(ctx, "ROLLBACK") //nolint:errcheck // without a connection nothing is there either
			return err
		}
		_, err = c.Conn.ExecContext(ctx, "COMMIT")
		if err != nil && c.transaction() == 0 { // whatever the driver says, it may have been sent
			err = &SyncError{p.failed(err)}
		}
		return err
	}, nil
}

func (p *postgres) look(ctx context.Context, c *conn) error {
	return start(ctx, c, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
}

// start begins a transaction.
func start(ctx context.Context, c *conn, text string) error {
	if c.transaction() != 'I' {
		return &staleError{outage.OfDatabase(driver.ErrBadConn)}
	}
	_, err := c.Conn.ExecContext(ctx, text)
	switch {
	case err == nil:
	case c.transaction() == 0:
		err = &staleError{err}
	default:
		c.Conn.ExecContext(ctx, "ROLLBACK") //nolint:errcheck // it has changed nothing
	}
	return err
}

// transaction gives the server's letter for the state of the connection: I for idle, T in a transaction, E in one that failed; 0 where the
// connection is gone.
func (c *conn) transaction() (state byte) {
	c.Raw(func(dc any) error { //nolint:errcheck // then it is gone
		if dc := dc.(pgConn).Conn.Conn(); !dc.IsClosed() {
			state = dc.PgConn().TxStatus()
		}
		return nil
	})
	return state
}

func (p *postgres) failed(err error) error {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		if !outage.Is(err) {
			return outage.OfDatabase(err)
		}
	}
	return err
}

// counted gives about how many bytes the rows and the large contents take.
var counted = fmt.Sprintf(`SELECT ((SELECT coalesce(sum(bytes), 0) + count(*)*%d FROM content)
	+ (SELECT count(*) FROM op)*%d + (SELECT count(*) FROM change)*%d)::bigint`, contentBytes, opBytes, changeBytes)

func (p *postgres) size(ctx context.Context, q querier) (used, log int64, err error) {
	used, err = one[int64](ctx, q, counted)
	return used, 0, err
}

// grown: saves add up what they add. Retention counts anew.
func (p *postgres) grown(ctx context.Context, tx *tx, added int64) (used int64, err error) {
	return one[int64](ctx, tx, "UPDATE meta SET v=v+? WHERE k='used' RETURNING v", added)
}

func (p *postgres) shrink(ctx context.Context, tx *tx) (more bool, err error) {
	return false, tx.exec(ctx, "UPDATE meta SET v=("+counted+") WHERE k='used'")
}

// scour: the server gives the room of deleted rows to new ones. What it keeps of them until then, its log, its replicas and its backups are
// out of our reach.
func (p *postgres) scour(ctx context.Context, c *conn) error {
	if _, err := c.ExecContext(ctx, "UPDATE meta SET v=("+counted+") WHERE k='used'"); err != nil {
		return err
	}
	if _, err := c.Conn.ExecContext(ctx, "VACUUM content, change, unpurged"); err != nil {
		return err
	}
	owner, err := one[bool](ctx, c, "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid='content'::regclass")
	if err == nil && !owner { // the server has skipped the tables, and has told only its own log
		p.logger.Warn("what was purged may stay in files of the database until it cleans them up: VACUUM is for the account that owns the tables; " +
			"purge with that one")
	}
	return err
}

// check: the pages are the server's, and its operators look after them.
func (p *postgres) check(context.Context, querier) ([]string, error) { return nil, nil }

func (p *postgres) beside() ([]string, error) { return nil, nil }

func (p *postgres) dump(context.Context, string) error { return errNoFile }

// clean: the lock is of the connection, and ends with it.
func (p *postgres) clean(ctx context.Context) (done func(), err error) {
	c, err := p.read.DB.Conn(ctx)
	if err != nil {
		return nil, err
	}
	done = func() {
		c.Raw(func(any) error { return driver.ErrBadConn }) //nolint:errcheck // this closes it
	}
	if _, err = c.ExecContext(ctx, "SELECT pg_advisory_lock("+lockOfCleaner+")"); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// pgConnector makes connections that take "?" for an argument, and have the package's own errors.
type pgConnector struct{ driver.Connector }

func (p pgConnector) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, pgError(ctx, err, errors.As(err, new(*pgconn.ConnectError)))
	}
	return pgConn{c.(*stdlib.Conn)}, nil
}

type pgConn struct{ *stdlib.Conn }

// Close tells no error: one of a connection that was cut says nothing about what was committed on it.
func (c pgConn) Close() error {
	c.Conn.Close() //nolint:errcheck // as said
	return nil
}

func (c pgConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	r, err := c.Conn.ExecContext(ctx, numbered(q), unkept(q, args))
	return r, c.named(ctx, err)
}

func (c pgConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	r, err := c.Conn.QueryContext(ctx, numbered(q), unkept(q, args))
	if err != nil {
		return nil, c.named(ctx, err)
	}
	return pgRows{r.(*stdlib.Rows), ctx, c}, nil
}

func (c pgConn) named(ctx context.Context, err error) error {
	return pgError(ctx, err, c.Conn.Conn().IsClosed())
}

// IsValid is asked before the connection is used again.
func (c pgConn) IsValid() bool {
	return !c.Conn.Conn().IsClosed() && c.Conn.Conn().PgConn().TxStatus() == 'I'
}

type pgRows struct {
	*stdlib.Rows
	ctx context.Context
	c   pgConn
}

func (r pgRows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err == nil || err == io.EOF {
		return err
	}
	return r.c.named(r.ctx, err)
}

// numbered writes the arguments of a statement as $1, $2 and so on. No text in a statement has a question mark.
func numbered(q string) string {
	if !strings.Contains(q, "?") {
		return q
	}
	out := make([]byte, 0, len(q)+16)
	n := 0
	for i := range len(q) {
		if out = append(out, q[i]); q[i] == '?' {
			n++
			out = strconv.AppendInt(append(out[:len(out)-1], '$'), int64(n), 10)
		}
	}
	return string(out)
}

// unkept asks that a statement with a list of numbers, which hardly comes twice, is not kept compiled.
func unkept(q string, args []driver.NamedValue) []driver.NamedValue {
	if !strings.Contains(q, inNumbers) {
		return args
	}
	return append([]driver.NamedValue{{Value: pgx.QueryExecModeExec}}, args...)
}

// pgError gives an error of the server or the driver as the package's own. gone says that there is no connection any more.
func pgError(ctx context.Context, err error, gone bool) error {
	if end, ok := ctx.Deadline(); err != nil && ok && !time.Now().Before(end) { // a dialer has a clock of its own, and may be first
		return context.DeadlineExceeded
	}
	if err != nil && ctx.Err() != nil { // if it had sent something, the driver has closed the connection
		return ctx.Err()
	}
	if err == nil || errors.Is(err, driver.ErrBadConn) {
		return err
	}
	why, _ := errors.AsType[*pgconn.PgError](err)
	code := ""
	if why != nil {
		code = why.Code
	}
	switch {
	case code == "55P03": // lock_not_available
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case code == "53100": // disk_full
		return &DiskFullError{err}
	case code == "22021" || code == "22P05": // character_not_in_repertoire, untranslatable_character
		return &BadOpError{"", "a name is no UTF-8, or has a NUL byte"}
	case code == "54000": // program_limit_exceeded
		return &BadOpError{"", "a path or name is too long for an index of the database, which takes about 2,700 bytes"}
	case code == "25006": // read_only_sql_transaction, as of a standby
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case strings.HasPrefix(code, "XX0") && code > "XX000": // data_corrupted, index_corrupted
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case strings.HasPrefix(code, "28") || strings.HasPrefix(code, "3D"): // no such account, password or database: that does not mend
		return err
	case gone:
		return outage.OfDatabase(err)
	}
	return err
}
