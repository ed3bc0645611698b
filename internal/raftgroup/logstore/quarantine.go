package logstore

import (
	"errors"
	"fmt"
)

// KeyQuarantine marks a group that must not be opened; its value is the reason.
var KeyQuarantine = []byte("Quarantine")

// Quarantine durably marks a group whose data must not be used: raftgroup.Open rejects it with
// ErrQuarantined until Release or Destroy. For an open group use raftgroup.Group.Quarantine.
func (l *DB) Quarantine(group uint32, reason string) error {
	if err := l.values(group).Set(KeyQuarantine, []byte(reason)); err != nil {
		return fmt.Errorf("quarantine group %d: %w", group, err)
	}
	return nil
}

// Quarantined returns why a group is quarantined, "" if it is not.
func (l *DB) Quarantined(group uint32) (reason string, err error) {
	mark, err := l.values(group).Get(KeyQuarantine)
	if errors.Is(err, ErrKeyNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read quarantine mark of group %d: %w", group, err)
	}
	return string(mark), nil
}

// Release removes the mark of Quarantine. It repairs nothing: a group whose data is still
// damaged is quarantined again when the damage is found.
func (l *DB) Release(group uint32) error {
	if err := l.values(group).Set(KeyQuarantine, nil); err != nil {
		return fmt.Errorf("release group %d from quarantine: %w", group, err)
	}
	return nil
}
