package raftgroup

import (
	"fmt"
)

// EntryError means that a committed entry cannot be interpreted. It wraps ErrQuarantined: a
// replica that skipped the entry would diverge.
type EntryError struct {
	Index, Term uint64
	Size        int // bytes of the entry
	Err         error
}

// Error identifies the entry.
func (e *EntryError) Error() string {
	return fmt.Sprintf("committed entry %d (term %d, %d bytes) cannot be applied: %v", e.Index, e.Term, e.Size, e.Err)
}

// Unwrap returns ErrQuarantined and the cause.
func (e *EntryError) Unwrap() []error { return []error{ErrQuarantined, e.Err} }
