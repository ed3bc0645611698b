package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckRegister(t *testing.T) {
	write := func(v, from, to int) Access {
		return Access{Client: v, Change: &Change{Value: v}, Got: v, Span: span(from, to)}
	}
	read := func(v, from, to int) Access { return Access{Client: 100 + from, Got: v, Span: span(from, to)} }
	swap := func(old, v, got, from, to int) Access {
		return Access{Client: v, Change: &Change{Value: v, If: &old}, Got: got, Span: span(from, to)}
	}
	unknown := func(a Access) Access {
		a.Outcome = Unknown
		return a
	}
	for _, c := range []struct {
		name         string
		accesses     []Access
		linearizable bool
	}{
		{"sequential", []Access{write(1, 0, 1), read(1, 2, 3), write(2, 4, 5), read(2, 6, 7)}, true},
		{"old value during a write", []Access{write(1, 0, 5), read(0, 1, 2), read(1, 3, 4)}, true},
		{"unknown write is never read", []Access{unknown(write(1, 0, 1)), read(0, 2, 3)}, true},
		{"unknown write is read late", []Access{unknown(write(1, 0, 1)), read(0, 2, 3), read(1, 4, 5)}, true},
		{"swaps", []Access{swap(0, 1, 1, 0, 1), swap(0, 2, 1, 2, 3), swap(1, 3, 3, 4, 5)}, true},
		{"stale read", []Access{write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)}, false},
		{"lost write", []Access{write(1, 0, 1), read(0, 2, 3)}, false},
		{"unknown write appears and disappears", []Access{unknown(write(1, 0, 1)), read(1, 2, 3), read(0, 4, 5)}, false},
		{"two swaps of one value succeed", []Access{swap(0, 1, 1, 0, 1), swap(0, 2, 2, 0, 1)}, false},
		{"rejected write is read", []Access{{Change: &Change{Value: 1}, Outcome: Failed, Span: span(0, 1)}, read(1, 2, 3)}, false},
		{"too many", make([]Access, MaxAccesses+1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := CheckRegister(c.accesses); c.linearizable {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
			}
		})
	}
}
