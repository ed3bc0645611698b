package query

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// database is a connection to SQLite. The driver opens it and registers tables and functions.
// Statements are run here, because database/sql cannot interrupt a statement that computes without
// reading, nor report the position of an error.
type database struct {
	conn driver.Conn
	db   uintptr
	tls  *libc.TLS
}

// errHandle means that the internals of the driver have changed.
var errHandle = errors.New("the SQLite driver does not expose its handle")

func newDatabase(conn driver.Conn) (*database, error) {
	v := reflect.Indirect(reflect.ValueOf(conn))
	if v.Kind() != reflect.Struct {
		return nil, errHandle
	}
	handle := v.FieldByName("db")
	if !handle.IsValid() || handle.Kind() != reflect.Uintptr || handle.Uint() == 0 {
		return nil, errHandle
	}
	return &database{conn, uintptr(handle.Uint()), libc.NewTLS()}, nil
}

func (d *database) close() error {
	err := d.conn.Close()
	authorizers.Delete(d.db)
	watchers.Delete(d.db)
	d.tls.Close()
	return err
}

func (d *database) exec(query string) error {
	s, err := d.prepare(query)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	defer s.close()
	for {
		if more, err := s.step(); err != nil || !more {
			return err
		}
	}
}

func (d *database) limit(id, n int32) { sqlite3.Xsqlite3_limit(d.tls, d.db, id, n) }

// pointer is an address in the memory of SQLite, which is not Go memory and does not move.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// sqlError is an error that SQLite reports.
type sqlError struct {
	code    int32  // primary result code
	message string // without the code
	offset  int    // in the statement, -1 if unknown
}

func (e *sqlError) Error() string { return e.message }

func (d *database) error(rc int32) *sqlError {
	return &sqlError{
		code:    rc & 0xff,
		message: libc.GoString(sqlite3.Xsqlite3_errmsg(d.tls, d.db)),
		offset:  int(sqlite3.Xsqlite3_error_offset(d.tls, d.db)),
	}
}

// statement is a prepared statement.
type statement struct {
	d       *database
	p       uintptr
	columns []resultColumn
}

// resultColumn is a column of a result. Its type is empty if it is computed.
type resultColumn struct {
	name string
	typ  Type
}

func (d *database) prepare(query string) (*statement, error) {
	if strings.IndexByte(query, 0) >= 0 {
		return nil, &sqlError{code: sqlite3.SQLITE_ERROR, message: "the query contains a NUL byte", offset: strings.IndexByte(query, 0)}
	}
	z, err := libc.CString(query)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(d.tls, z)
	out := d.tls.Alloc(int(unsafe.Sizeof(uintptr(0))))
	defer d.tls.Free(int(unsafe.Sizeof(uintptr(0))))
	if rc := sqlite3.Xsqlite3_prepare_v2(d.tls, d.db, z, -1, out, 0); rc != sqlite3.SQLITE_OK {
		return nil, d.error(rc)
	}
	s := &statement{d: d, p: *(*uintptr)(pointer(out))}
	if s.p == 0 {
		return nil, &sqlError{code: sqlite3.SQLITE_ERROR, message: "the query is empty", offset: -1}
	}
	for i := range sqlite3.Xsqlite3_column_count(d.tls, s.p) {
		s.columns = append(s.columns, resultColumn{
			name: libc.GoString(sqlite3.Xsqlite3_column_name(d.tls, s.p, i)),
			typ:  typeOf[libc.GoString(sqlite3.Xsqlite3_column_decltype(d.tls, s.p, i))],
		})
	}
	return s, nil
}

// readOnly reports whether the statement does not write.
func (s *statement) readOnly() bool { return sqlite3.Xsqlite3_stmt_readonly(s.d.tls, s.p) != 0 }

func (s *statement) close() { sqlite3.Xsqlite3_finalize(s.d.tls, s.p) }

// step advances to the next row; false if there is none.
func (s *statement) step() (bool, error) {
	switch rc := sqlite3.Xsqlite3_step(s.d.tls, s.p); rc {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	default:
		return false, s.d.error(rc)
	}
}

// The methods below return a column of the current row.

func (s *statement) kind(i int) int32 { return sqlite3.Xsqlite3_column_type(s.d.tls, s.p, int32(i)) }

func (s *statement) int(i int) int64 { return sqlite3.Xsqlite3_column_int64(s.d.tls, s.p, int32(i)) }

func (s *statement) float(i int) float64 {
	return sqlite3.Xsqlite3_column_double(s.d.tls, s.p, int32(i))
}

// bytes returns text or a blob, valid until the next step.
func (s *statement) bytes(i int) []byte {
	p := sqlite3.Xsqlite3_column_blob(s.d.tls, s.p, int32(i))
	n := sqlite3.Xsqlite3_column_bytes(s.d.tls, s.p, int32(i))
	if p == 0 || n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(pointer(p)), n)
}

// interruptInterval is how often the interrupt is repeated: SQLite discards one that arrives
// before the first step.
const interruptInterval = 10 * time.Millisecond

// interruptWhen interrupts statements once ctx ends, until stop is called.
func (d *database) interruptWhen(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		tls := libc.NewTLS()
		defer tls.Close()
		tick := time.NewTicker(interruptInterval)
		defer tick.Stop()
		for {
			sqlite3.Xsqlite3_interrupt(tls, d.db)
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}
