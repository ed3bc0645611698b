package journal

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// StatePair is one key and value of an object's state.
type StatePair struct{ Key, Value []byte }

// StateReplacement is what an operator wants an object's state to be. It is the
// input of an invocation that no service sees.
type StateReplacement struct {
	// State is everything the object has afterwards.
	State []StatePair
	// Version is that of the state which is to be replaced; empty: whatever it is.
	Version string
}

// Field numbers of a StateReplacement.
const (
	fieldPairs       protowire.Number = 1
	fieldVersion     protowire.Number = 2
	fieldStateKey    protowire.Number = 1
	fieldStateValue  protowire.Number = 2
	replacementLabel                  = "state replacement"
)

// NewStateReplacement is the payload of the Input entry that holds r.
func NewStateReplacement(r *StateReplacement) []byte {
	var b []byte
	for _, p := range r.State {
		pair := protowire.AppendBytes(protowire.AppendTag(nil, fieldStateKey, protowire.BytesType), p.Key)
		pair = protowire.AppendBytes(protowire.AppendTag(pair, fieldStateValue, protowire.BytesType), p.Value)
		b = protowire.AppendBytes(protowire.AppendTag(b, fieldPairs, protowire.BytesType), pair)
	}
	if r.Version != "" {
		b = appendString(b, fieldVersion, r.Version)
	}
	return b
}

// ParseStateReplacement reads what NewStateReplacement wrote; it points into
// payload.
func ParseStateReplacement(payload []byte) (*StateReplacement, error) {
	r := new(StateReplacement)
	err := eachField(payload, func(num protowire.Number, typ protowire.Type, v value) error {
		if typ != protowire.BytesType {
			return fmt.Errorf("%w: field %d is no bytes", ErrPayload, num)
		}
		switch num {
		case fieldPairs:
			r.State = append(r.State, StatePair{})
			return r.State[len(r.State)-1].parse(v.bytes)
		case fieldVersion:
			r.Version = string(v.bytes)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", replacementLabel, err)
	}
	return r, nil
}

func (p *StatePair) parse(b []byte) error {
	return eachField(b, func(num protowire.Number, typ protowire.Type, v value) error {
		if typ != protowire.BytesType {
			return fmt.Errorf("%w: field %d is no bytes", ErrPayload, num)
		}
		switch num {
		case fieldStateKey:
			p.Key = v.bytes
		case fieldStateValue:
			p.Value = v.bytes
		}
		return nil
	})
}
