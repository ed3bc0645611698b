package query

import (
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// authorizer decides whether a statement may perform an action; see SQLite's
// sqlite3_set_authorizer for actions and their arguments.
type authorizer func(action int32, arg1, arg2 string) bool

// authorizers maps database handles to authorizers: SQLite passes only a number to the callback.
var authorizers sync.Map // uintptr → authorizer

// guard installs an authorizer for all statements prepared from now on.
func (d *database) guard(decide authorizer) error {
	authorizers.Store(d.db, decide)
	if rc := sqlite3.Xsqlite3_set_authorizer(d.tls, d.db, functionPointer(authorize), d.db); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("set authorizer: code %d", rc)
	}
	return nil
}

// authorize is the callback of SQLite. Without an authorizer it denies.
func authorize(_ *libc.TLS, db uintptr, action int32, arg1, arg2, _, _ uintptr) int32 {
	if decide, ok := authorizers.Load(db); ok && decide.(authorizer)(action, libc.GoString(arg1), libc.GoString(arg2)) {
		return sqlite3.SQLITE_OK
	}
	return sqlite3.SQLITE_DENY
}

// functionPointer converts a function to what the translated SQLite code calls: the address of a
// variable that contains it.
func functionPointer(f func(*libc.TLS, uintptr, int32, uintptr, uintptr, uintptr, uintptr) int32) uintptr {
	return *(*uintptr)(unsafe.Pointer(&f))
}

// watchers maps database handles to the functions that continue or interrupt their statements.
var watchers sync.Map // uintptr → func() bool

// watch has a function called every checkInterval operations of a statement, which it interrupts by
// returning false.
func (d *database) watch(proceed func() bool) {
	watchers.Store(d.db, proceed)
	callback := progress
	sqlite3.Xsqlite3_progress_handler(d.tls, d.db, checkInterval, *(*uintptr)(unsafe.Pointer(&callback)), d.db)
}

// progress is the callback of SQLite.
func progress(_ *libc.TLS, db uintptr) int32 {
	if proceed, ok := watchers.Load(db); ok && !proceed.(func() bool)() {
		return 1
	}
	return 0
}
