package journal

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// MaxDepth, MaxNodes and MaxLeaves bound the levels, the nodes and the leaves of an await. A
// nested node is two bytes on the wire and many times that in memory, and a leaf is one byte and
// at least one lookup when the suspension is applied.
const (
	MaxDepth  = 1000
	MaxNodes  = 100_000
	MaxLeaves = 100_000
)

// ErrTooDeep is wrapped when an await has more than MaxDepth levels.
var ErrTooDeep = errors.New("awaited futures nested too deeply")

// ParseSuspension decodes what a suspending handler waits for. Protocol 7 has the tree in a
// separate field; earlier protocols have flat lists.
//
// It does not use the generated code, whose recursion depth is controlled by the input: a
// message below the size limit could exhaust the stack.
func ParseSuspension(payload []byte, protocol uint8) (*Future, error) {
	f, n := &Future{Combinator: CombineFirstCompleted}, new(size)
	err := eachField(payload, func(num protowire.Number, typ protowire.Type, v value) error {
		switch {
		case protocol >= 7 && num == 4:
			return f.parse(v.bytes, 1, n) // the field may be repeated
		case protocol < 7:
			return f.parseLeaf(num, typ, v, n)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("suspension: %w", err)
	case f.Empty():
		return nil, missing("suspension", "awaited result")
	}
	return f, nil
}

// ParseFuture decodes a Future message.
func ParseFuture(payload []byte) (*Future, error) {
	f := &Future{}
	if err := f.parse(payload, 1, new(size)); err != nil {
		return nil, fmt.Errorf("future: %w", err)
	}
	return f, nil
}

// size is the size of a tree.
type size struct{ nodes, leaves int }

func (n *size) addLeaf() error {
	if n.leaves++; n.leaves > MaxLeaves {
		return fmt.Errorf("%w: future has more than %d results to wait for", ErrPayload, MaxLeaves)
	}
	return nil
}

func (f *Future) parse(payload []byte, level int, n *size) error {
	if level > MaxDepth {
		return ErrTooDeep
	}
	if n.nodes++; n.nodes > MaxNodes {
		return fmt.Errorf("%w: future has more than %d nodes", ErrPayload, MaxNodes)
	}
	f.Combinator = CombineUnknown
	return eachField(payload, func(num protowire.Number, typ protowire.Type, v value) error {
		switch {
		case num == 4 && typ == protowire.BytesType:
			f.Nested = append(f.Nested, Future{})
			return f.Nested[len(f.Nested)-1].parse(v.bytes, level+1, n)
		case num == 5 && typ == protowire.VarintType:
			// A combinator of a later protocol settles in a way unknown here.
			if f.Combinator = CombineUnknown; v.number <= uint64(CombineAllSucceededOrFirstFailed) {
				f.Combinator = Combinator(v.number)
			}
			return nil
		}
		return f.parseLeaf(num, typ, v, n)
	})
}

// parseLeaf decodes the lists that Future and the older suspensions share.
func (f *Future) parseLeaf(num protowire.Number, typ protowire.Type, v value, n *size) (err error) {
	switch num {
	case 1:
		f.Completions, err = appendNumbers(f.Completions, typ, v, n)
	case 2:
		f.Signals, err = appendNumbers(f.Signals, typ, v, n)
	case 3:
		if typ == protowire.BytesType {
			if err = n.addLeaf(); err == nil {
				f.Names = append(f.Names, string(v.bytes))
			}
		}
	}
	return err
}

// appendNumbers decodes one field of a list of numbers, packed or not.
func appendNumbers(to []uint32, typ protowire.Type, v value, sum *size) ([]uint32, error) {
	if typ == protowire.VarintType {
		return append(to, uint32(v.number)), sum.addLeaf()
	}
	for b := v.bytes; len(b) > 0; {
		number, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return to, fmt.Errorf("%w: %w", ErrPayload, protowire.ParseError(n))
		}
		if err := sum.addLeaf(); err != nil {
			return to, err
		}
		to, b = append(to, uint32(number)), b[n:]
	}
	return to, nil
}

// value is the content of a field: number for a varint, bytes for a length-delimited field.
type value struct {
	number uint64
	bytes  []byte
}

func eachField(b []byte, do func(protowire.Number, protowire.Type, value) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrPayload, protowire.ParseError(n))
		}
		b = b[n:]
		var v value
		switch typ {
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrPayload, protowire.ParseError(n))
		}
		if err := do(num, typ, v); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
