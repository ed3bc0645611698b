package query

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"modernc.org/libc"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// session is a SQLite connection with all tables. It runs one query at a time.
type session struct {
	engine *Engine
	db     *database

	// The running query.
	ctx    context.Context //nolint:containedctx // SQLite calls tables and functions without one
	slice  *timeSlice
	now    time.Time // for the functions of the query
	began  time.Time
	strong bool // read the tables of partitions linearizably
	// Restrictions of the client.
	hidePayloads, hideAudit bool
	limits                  Limits
	collated                bool // the query uses collations, so SQLite evaluates the conditions
	failure                 error
	stats                   Stats
	pattern                 *regexp.Regexp // last one used
	quantileNumbers         int            // that all quantiles of the query hold
}

// Stats describes what a query has read.
type Stats struct {
	Partitions int // requested, per scan
	Scans      int // of tables
	Pages      int // read from partitions
	Read       int // rows read, including those that did not match
}

// countRead counts pages and rows that were read. The statistics of a client with limits must not show
// how much others have: the cursor counts the rows within the limits.
func (s *session) countRead(pages, rows int) {
	if !s.limits.any() {
		s.stats.Pages += pages
		s.stats.Read += rows
	}
}

func (s *session) partitions() Partitions { return s.engine.cfg.Partitions }

// fail records the first error of a source, since SQLite passes on only a part of it.
func (s *session) fail(err error) error {
	if s.failure == nil {
		s.failure = err
	}
	return err
}

// limits are the SQLite limits of statements, independent of their text.
var limits = map[int32]int32{
	sqlite3.SQLITE_LIMIT_LENGTH:              maxValue, // also of a row
	sqlite3.SQLITE_LIMIT_SQL_LENGTH:          1 << 20,
	sqlite3.SQLITE_LIMIT_COLUMN:              500,
	sqlite3.SQLITE_LIMIT_EXPR_DEPTH:          200,
	sqlite3.SQLITE_LIMIT_COMPOUND_SELECT:     50,
	sqlite3.SQLITE_LIMIT_VDBE_OP:             250_000,
	sqlite3.SQLITE_LIMIT_FUNCTION_ARG:        100,
	sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
	sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH:       1,
}

// configure turns on memory accounting, which the heap limit requires and which SQLite accepts
// only before its initialization.
var configure = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	va := libc.NewVaList(int32(1))
	defer libc.Xfree(tls, va)
	if rc := sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_MEMSTATUS, va); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("configure SQLite: code %d", rc)
	}
	return nil
})

func (e *Engine) newSession() (_ *session, err error) {
	if err := configure(); err != nil {
		return nil, err
	}
	s := &session{engine: e, ctx: context.Background()}
	d := new(sqlite.Driver) // a separate driver: functions and tables belong to the session
	if err := d.RegisterModule("platform", module{s}); err != nil {
		return nil, fmt.Errorf("register tables: %w", err)
	}
	if err := s.registerFunctions(d); err != nil {
		return nil, err
	}
	conn, err := d.Open(":memory:?_dqs=0")
	if err != nil {
		return nil, fmt.Errorf("open SQLite: %w", err)
	}
	if s.db, err = newDatabase(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.db.close())
	}
	return s, nil
}

// prepare creates the tables and then forbids further changes.
func (s *session) prepare() error {
	statements := []string{
		"PRAGMA temp_store = MEMORY", "PRAGMA trusted_schema = OFF",
		fmt.Sprintf("PRAGMA hard_heap_limit = %d", s.engine.cfg.MemoryLimit),
		"ATTACH ':memory:' AS " + schemaInformation,
	}
	for _, t := range s.engine.catalog.tables {
		schema := "main"
		if t.Schema != schemaPublic {
			schema = t.Schema
		}
		statements = append(statements, fmt.Sprintf("CREATE VIRTUAL TABLE %s.%s USING platform", schema, quoteName(t.Name)))
	}
	for _, statement := range append(statements, "PRAGMA query_only = ON") {
		if err := s.db.exec(statement); err != nil {
			return fmt.Errorf("prepare SQLite: %w", err)
		}
	}
	for id, n := range limits {
		s.db.limit(id, n)
	}
	s.db.watch(func() bool { return s.slice == nil || s.slice.check(s.ctx) == nil })
	return s.db.guard(s.authorize)
}

// authorize permits only reading system tables with known functions.
func (s *session) authorize(action int32, arg1, arg2 string) bool {
	switch action {
	case sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE:
		return true
	case sqlite3.SQLITE_READ:
		return arg1 == "json_each" || arg1 == "json_tree" || s.engine.catalog.known(arg1) || arg2 == "" && !internal(arg1)
	case sqlite3.SQLITE_FUNCTION:
		return allowedFunctions[arg2]
	}
	return false
}

// internal reports whether a table is SQLite's own. Other tables that are not ours are parts of
// the query, and no columns of them are read.
func internal(table string) bool {
	for _, prefix := range []string{"sqlite_", "pragma_", "dbstat", "fts", "rtree", "bytecode", "tables_used"} {
		if strings.HasPrefix(strings.ToLower(table), prefix) {
			return true
		}
	}
	return false
}

// begin prepares the session for a query.
func (s *session) begin(ctx context.Context, slice *timeSlice, now time.Time, collated bool) {
	s.ctx, s.slice, s.now, s.began, s.collated, s.failure, s.stats = ctx, slice, now, time.Now(), collated, nil, Stats{}
	s.quantileNumbers = 0
}
