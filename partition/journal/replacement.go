package journal

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// StatePair is one key and value of an object's state.
type StatePair struct{ Key, Value []byte }

// StateReplacement is the new state of an object, as an operator set it. It is the input
// of a state update, which no service sees.
type StateReplacement struct {
	// State is the complete new state of the object.
	State []StatePair
	// Version is the expected version of the current state; empty: any.
	Version string
}

// Field numbers of a StateReplacement.
const (
	fieldPairs      protowire.Number = 1
	fieldVersion    protowire.Number = 2
	fieldStateKey   protowire.Number = 1
	fieldStateValue protowire.Number = 2
)

// NewStateReplacement returns the payload of the Input entry that holds r.
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

// ParseStateReplacement decodes a payload of NewStateReplacement; the result points into
// payload. Anything else is refused: ignoring a part of it would delete state.
func ParseStateReplacement(payload []byte) (*StateReplacement, error) {
	r := new(StateReplacement)
	err := eachBytes(payload, func(num protowire.Number, b []byte) error {
		switch num {
		case fieldPairs:
			r.State = append(r.State, StatePair{})
			return r.State[len(r.State)-1].parse(b)
		case fieldVersion:
			r.Version = string(b)
		default:
			return fmt.Errorf("%w: unknown field %d", ErrPayload, num)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("state replacement: %w", err)
	}
	return r, nil
}

func (p *StatePair) parse(b []byte) error {
	return eachBytes(b, func(num protowire.Number, b []byte) error {
		switch num {
		case fieldStateKey:
			p.Key = b
		case fieldStateValue:
			p.Value = b
		default:
			return fmt.Errorf("%w: unknown field %d", ErrPayload, num)
		}
		return nil
	})
}

// eachBytes iterates over the fields of a message that has only length-delimited ones.
func eachBytes(b []byte, do func(protowire.Number, []byte) error) error {
	return eachField(b, func(num protowire.Number, typ protowire.Type, v value) error {
		if typ != protowire.BytesType {
			return fmt.Errorf("%w: field %d has wire type %d", ErrPayload, num, typ)
		}
		return do(num, v.bytes)
	})
}
