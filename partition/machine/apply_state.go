package machine

import (
	"fmt"

	"platform/internal/limits"
	"platform/partition/journal"
)

// getState completes with the current value of a key, or void.
func (m *Machine) getState(inv *Invocation, payload []byte) error {
	c, err := journal.ParseState(journal.GetLazyState, payload)
	if err != nil {
		return err
	}
	value, found, err := m.st.Value(inv.Target.Object(), c.Key)
	if err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	answer := journal.NewVoid(c.Completion)
	if found {
		answer = journal.NewCompletion(c.Completion, journal.Result{Value: value})
	}
	_, err = m.record(inv, completion(journal.GetLazyStateCompletion, c.Completion, answer))
	return err
}

// getStateKeys completes with all keys, in order.
func (m *Machine) getStateKeys(inv *Invocation, payload []byte) error {
	id, err := journal.ParseGetLazyStateKeys(payload)
	if err != nil {
		return err
	}
	keys, err := m.stateKeys(inv.Target.Object())
	if err != nil {
		return err
	}
	_, err = m.record(inv, completion(journal.GetLazyStateKeysCompletion, id, journal.NewStateKeys(id, keys)))
	return err
}

func (m *Machine) setState(inv *Invocation, payload []byte) error {
	c, err := journal.ParseState(journal.SetState, payload)
	if err == nil {
		m.st.PutValue(inv.Target.Object(), c.Key, c.Value)
	}
	return err
}

// deleteState deletes a key. One that is too long to be set may have been stored by an older
// server. If it was not, it must not be written, which a deletion does.
func (m *Machine) deleteState(inv *Invocation, payload []byte) error {
	c, err := journal.ParseState(journal.ClearState, payload)
	if err != nil {
		return err
	}
	if len(c.Key) > limits.Key {
		if _, found, err := m.st.Value(inv.Target.Object(), c.Key); err != nil || !found {
			return err
		}
	}
	m.st.DeleteValue(inv.Target.Object(), c.Key)
	return nil
}

func (m *Machine) stateKeys(o Object) ([][]byte, error) {
	var keys [][]byte
	for key, err := range m.st.Keys(o) {
		if err != nil {
			return nil, fmt.Errorf("read state keys of %v: %w", o, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
