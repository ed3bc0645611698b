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
