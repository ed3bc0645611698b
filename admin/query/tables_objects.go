package query

import (
	"encoding/binary"
	"unicode/utf8"

	"platform/partition"
)

// objectIdentity identifies the rows of objects.
func objectIdentity(r *row, b []byte) []byte {
	for _, part := range []string{r.Object.Scope, r.Object.Service, r.Object.Key, r.Key} {
		b = append(append(b, part...), 0)
	}
	return binary.BigEndian.AppendUint64(b, r.Index)
}

// Columns of the owning object.
var (
	scopeColumn   = column[row]{"scope", Text, "scope, if scoped", func(r *row) value { return text(r.Object.Scope) }, byScope, false}
	serviceColumn = column[row]{"service_name", Text, "object or workflow", func(r *row) value { return r.Object.Service }, byService, false}
	objectColumn  = column[row]{"service_key", Text, "its key", func(r *row) value { return r.Object.Key }, byObject, false}
	keyColumn     = column[row]{"key", Text, "name", func(r *row) value { return r.Key }, noField, false}
)

// utf8Text returns bytes as text if they are valid UTF-8.
func utf8Text(b []byte) value {
	if !utf8.Valid(b) {
		return nil
	}
	return string(b)
}

func stateTable() *Table {
	return define("state", "State of objects and workflows, a row per key.", scanned(partition.State, objectIdentity).owned(byTargetOwner, ownerOfObject), []column[row]{
		partitionKeyColumn, scopeColumn, serviceColumn, objectColumn, keyColumn,
		{"key_length", U64, "bytes of the key", func(r *row) value { return number(len(r.Key)) }, noField, false},
		{"value_utf8", Text, "value, if it is valid UTF-8", func(r *row) value { return utf8Text(r.Value) }, noField, true},
		{"value", Binary, "raw value", func(r *row) value { return present(r.Value) }, noField, true},
		{"value_length", U64, "bytes of the value", func(r *row) value { return number(r.Size) }, noField, false},
	})
}

// present returns bytes that are not NULL even if empty.
func present(b []byte) value {
	if b == nil {
		return []byte{}
	}
	return b
}

func sysInbox() *Table {
	return define("sys_inbox", "Invocations that wait for an object.", scanned(partition.Waiting, objectIdentity).owned(byTargetOwner, ownerOfObject), []column[row]{
		partitionKeyColumn, serviceColumn, objectColumn,
		{"id", Text, "waiting invocation", func(r *row) value { return r.ID.String() }, byID, false},
		{"sequence_number", U64, "order in the queue", func(r *row) value { return number(r.Index) }, noField, false},
		{"created_at", Timestamp, "deprecated", func(*row) value { return nil }, noField, false},
		{"num_ahead", U64, "number of invocations before it; only when it is selected by its id", func(r *row) value {
			if r.Ahead == nil {
				return nil
			}
			return number(*r.Ahead)
		}, tellsAhead, false},
	})
}

func sysKeyedServiceStatus() *Table {
	return define("sys_keyed_service_status", "Objects and the invocations that hold them.", scanned(partition.Locks, objectIdentity).owned(byTargetOwner, ownerOfObject), []column[row]{
		partitionKeyColumn, serviceColumn, objectColumn,
		{"invocation_id", Text, "invocation that holds it", func(r *row) value { return r.ID.String() }, noField, false},
	})
}

func sysLocks() *Table {
	return define("sys_locks", "Locks of objects.", scanned(partition.Locks, objectIdentity).owned(byTargetOwner, ownerOfObject), []column[row]{
		partitionKeyColumn, scopeColumn,
		{"lock_name", Text, "Service/key", func(r *row) value { return r.Object.Service + "/" + r.Object.Key }, byLock, false},
		{"acquired_at", Timestamp, "since when", func(r *row) value { return millis(r.Since) }, noField, true},
		{"acquired_by", Text, "holder: an invocation or a state change", func(r *row) value { return r.ID.String() }, noField, false},
	})
}

func sysPromise() *Table {
	return define("sys_promise", "Promises of workflows.", scanned(partition.Promises, objectIdentity).owned(byTargetOwner, ownerOfObject), []column[row]{
		partitionKeyColumn, scopeColumn, serviceColumn, objectColumn, keyColumn,
		{"completed", Bool, "whether it is completed", func(r *row) value { return boolean(r.Promise.Result != nil) }, noField, false},
		{"completion_success_value", Binary, "value", func(r *row) value {
			if r.Promise.Result == nil || r.Promise.Result.Failure != nil {
				return nil
			}
			return present(r.Promise.Result.Value)
		}, noField, true},
		{"completion_success_value_utf8", Text, "value, if it is valid UTF-8", func(r *row) value {
			if r.Promise.Result == nil || r.Promise.Result.Failure != nil {
				return nil
			}
			return utf8Text(r.Promise.Result.Value)
		}, noField, true},
		{"completion_failure", Text, "reason of a rejection", func(r *row) value { return resultFailure(r.Promise.Result) }, noField, true},
	})
}
