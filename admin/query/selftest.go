package query

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"modernc.org/sqlite"
)

// The driver does not export the SQLite handle of a connection, which limits, the authorizer and
// interrupts require. newDatabase reads it from an unexported field, so only the tested version of
// the driver is accepted.
const (
	driverModule  = "modernc.org/sqlite"
	driverVersion = "v1.60.1"
)

// ErrDisabled means that this server does not run SQL queries.
var ErrDisabled = errors.New("SQL is disabled on this server")

// SelfTest verifies that the SQLite driver is usable. If it is not, queries fail with the
// same error, which wraps ErrDisabled.
func (e *Engine) SelfTest() error { return e.disabled() }

// testDriver verifies the driver, once per process.
var testDriver = sync.OnceValue(func() error {
	if err := checkDriverVersion(debug.ReadBuildInfo()); err != nil {
		return fmt.Errorf("%w: %w", ErrDisabled, err)
	}
	if err := checkHandle(); err != nil {
		return fmt.Errorf("%w: the SQLite driver failed its self-test: %w", ErrDisabled, err)
	}
	return nil
})

// checkDriverVersion fails if the build has another version of the driver. A build without
// module information is accepted.
func checkDriverVersion(info *debug.BuildInfo, known bool) error {
	if !known {
		return nil
	}
	for _, module := range info.Deps {
		if module.Path != driverModule {
			continue
		}
		if module.Replace != nil {
			return fmt.Errorf("it was built with a replacement of %s", driverModule)
		}
		if module.Version != driverVersion {
			return fmt.Errorf("it was built with %s %s and needs %s; rebuild it with that version", driverModule, module.Version, driverVersion)
		}
	}
	return nil
}

// checkHandle verifies that the handle of a connection is that of its database.
func checkHandle() (err error) {
	if err := configure(); err != nil { // before anything else
		return err
	}
	conn, err := new(sqlite.Driver).Open(":memory:")
	if err != nil {
		return err
	}
	d, err := newDatabase(conn)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	defer func() { err = errors.Join(err, d.close()) }()
	const mark = 4711
	writer, ok := conn.(driver.ExecerContext)
	if !ok {
		return errHandle
	}
	if _, err := writer.ExecContext(context.Background(), fmt.Sprintf("PRAGMA user_version = %d", mark), nil); err != nil {
		return err
	}
	s, err := d.prepare("PRAGMA user_version")
	if err != nil {
		return err
	}
	defer s.close()
	if more, err := s.step(); err != nil || !more || s.int(0) != mark {
		return errors.Join(errHandle, err)
	}
	return nil
}
