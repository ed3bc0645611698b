package raftgroup

import (
	"errors"
	"fmt"
	"strings"
)

// Quarantine durably marks a group whose data must not be used: Open rejects it with
// ErrQuarantined until Release or Destroy. For an open group use Group.Quarantine.
func (l *LogDB) Quarantine(group uint32, reason string) error {
	s, err := l.Storage(group)
	if err == nil {
		err = s.Set(keyQuarantine, []byte(reason))
	}
	if err != nil {
		return fmt.Errorf("quarantine group %d: %w", group, err)
	}
	return nil
}

// Quarantined returns why a group is quarantined, "" if it is not.
func (l *LogDB) Quarantined(group uint32) (reason string, err error) {
	s, err := l.Storage(group)
	if err != nil {
		return "", err
	}
	mark, err := s.Get(keyQuarantine)
	if errors.Is(err, errKeyNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read quarantine mark of group %d: %w", group, err)
	}
	return string(mark), nil
}

// Release removes the mark of Quarantine. It repairs nothing: a group whose data is still
// damaged is quarantined again when the damage is found.
func (l *LogDB) Release(group uint32) error {
	s, err := l.Storage(group)
	if err == nil {
		err = s.Set(keyQuarantine, nil)
	}
	if err != nil {
		return fmt.Errorf("release group %d from quarantine: %w", group, err)
	}
	return nil
}

// quarantinedEarlier returns the error of a group that has the mark.
func quarantinedEarlier(reason string) error {
	return fmt.Errorf("%w: %s", ErrQuarantined, strings.TrimPrefix(reason, ErrQuarantined.Error()+": "))
}

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
