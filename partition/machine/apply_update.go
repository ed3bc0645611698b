package machine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"strings"

	"platform/internal/ids"
	"platform/partition/journal"
)

// A state update by an operator is an invocation without a handler: it queues for the key
// like any other, so that no handler sees state change while it runs, and its result can be
// awaited and requested again.

// update applies a state update that has acquired its key. It never leaves the partition.
type update struct{ id ids.Invocation }

func (*update) message() {}

const (
	// maxUpdateBytes bounds what the state updates of one log entry read and write; the one
	// that exceeds it is the last. updateOverhead is counted for each.
	maxUpdateBytes = 4 << 20
	updateOverhead = 16 << 10
)

// delayUpdate makes a state update that has got its key wait for a timer, which is due
// immediately.
func (m *Machine) delayUpdate(inv *Invocation) error {
	if inv.Status != Inboxed {
		if err := inv.move(Inboxed, m.now); err != nil {
			return err
		}
	}
	inv.InboxedAt = m.now
	m.setTimer(Timer{At: m.now, Kind: TimerUpdate, ID: inv.ID})
	return m.put(inv)
}

// continueUpdate applies a delayed state update when its timer fires, or delays it again.
func (m *Machine) continueUpdate(inv *Invocation, t Timer) error {
	if m.used.updateBytes >= m.bounds.updateBytes {
		m.setTimer(t)
		return nil
	}
	return m.admit(inv, nil)
}

// versionDiffers is the result of an update that expects a different version of the state.
var versionDiffers = journal.Result{Failure: &journal.Failure{Code: 409, Message: "the state has another version than the one to be replaced"}}

// validUpdate reports whether the input of a state update is well formed.
func validUpdate(input []byte) bool {
	_, err := journal.ParseStateReplacement(input)
	return err == nil
}

// updateState replaces the state of an object, unless it has changed since the operator
// read it.
func (m *Machine) updateState(u *update) error {
	m.updates--
	inv, err := m.invocation(u.id)
	if err != nil || inv == nil || inv.Status != Invoked {
		return err
	}
	input, err := m.st.Entry(inv.ID, 0)
	if err != nil {
		return fmt.Errorf("read input of %s: %w", inv.ID, err)
	}
	m.used.updateBytes += updateOverhead + len(input.Payload)
	r, err := journal.ParseStateReplacement(input.Payload)
	if err != nil {
		return fmt.Errorf("input of %s: %w", inv.ID, err)
	}
	o := inv.Target.Object()
	if r.Version != "" {
		version, err := m.stateVersion(o)
		if err != nil {
			return err
		}
		if version != strings.TrimRight(r.Version, "=") {
			return m.complete(inv, &versionDiffers)
		}
	}
	m.st.DeleteValues(o)
	for _, p := range r.State {
		m.st.PutValue(o, p.Key, p.Value)
	}
	return m.complete(inv, &journal.Result{})
}

func (m *Machine) stateVersion(o Object) (string, error) {
	v := NewStateVersion()
	for e, err := range m.st.Values(o) {
		if err != nil {
			return "", fmt.Errorf("read state of %v: %w", o, err)
		}
		v.Add(e)
		m.used.updateBytes += len(e.Key) + len(e.Value)
	}
	return v.String(), nil
}

// StateVersion identifies the content of an object's state: a digest of all keys and
// values.
type StateVersion struct {
	digest hash.Hash
	head   []byte
	count  uint64
}

// NewStateVersion returns the version of empty state.
func NewStateVersion() *StateVersion { return &StateVersion{digest: sha256.New()} }

// Add adds the next entry, in key order.
func (v *StateVersion) Add(e StateEntry) {
	v.head = binary.BigEndian.AppendUint64(v.head[:0], v.count)
	v.head = append(append(append(v.head, 1), e.Key...), 2)
	v.digest.Write(v.head)
	v.digest.Write(e.Value)
	v.digest.Write([]byte{3})
	v.count++
}

// String returns the version as operators see it, in URL-safe base64 without padding.
func (v *StateVersion) String() string {
	return base64.RawURLEncoding.EncodeToString(v.digest.Sum(nil))
}
