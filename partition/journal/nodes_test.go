package journal_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"platform/partition/journal"
)

func TestFuturesWithTooManyNodesAreRejected(t *testing.T) {
	leaf := []byte{0x08, 1}
	empty := []byte{0x22, 0} // a nested future without content
	_, err := journal.ParseFuture(append(leaf, bytes.Repeat(empty, journal.MaxNodes-1)...))
	require.NoError(t, err)
	_, err = journal.ParseFuture(append(leaf, bytes.Repeat(empty, journal.MaxNodes)...))
	require.ErrorIs(t, err, journal.ErrPayload)
}

func TestNodesOfASuspensionAreCountedTogether(t *testing.T) {
	half := append([]byte{0x08, 1}, bytes.Repeat([]byte{0x22, 0}, journal.MaxNodes/2)...)
	field := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), half)
	_, err := journal.ParseSuspension(field, 7)
	require.NoError(t, err)
	_, err = journal.ParseSuspension(append(field, field...), 7)
	require.ErrorIs(t, err, journal.ErrPayload)
}

func TestPruningEvaluatesEachLeafOnce(t *testing.T) {
	tree := journal.Future{Completions: []uint32{1, 2, 3}, Combinator: journal.CombineAllCompleted}
	for range journal.MaxDepth - 1 {
		tree = journal.Future{Nested: []journal.Future{tree}, Combinator: journal.CombineAllCompleted}
	}
	looked := 0
	rest := tree.Prune(func(id journal.NotificationID) journal.Settled {
		if looked++; id.Index == 2 {
			return journal.Succeeded
		}
		return journal.Pending
	})
	require.Equal(t, 3, looked)
	require.Equal(t, journal.MaxDepth, rest.Depth())
	require.False(t, rest.Has(journal.Completion(2)))
	require.True(t, rest.Has(journal.Completion(3)))
}

// A leaf takes as little as a byte of a message, but a lookup when the suspension is applied.
func TestAnAwaitHasABoundedNumberOfLeaves(t *testing.T) {
	packed := func(field byte, n int) []byte {
		b := protowire.AppendVarint([]byte{field<<3 | 2}, uint64(n))
		return append(b, bytes.Repeat([]byte{1}, n)...)
	}
	for name, leaves := range map[string]func(n int) []byte{
		"packed completions": func(n int) []byte { return packed(1, n) },
		"packed signals":     func(n int) []byte { return packed(2, n) },
		"completions":        func(n int) []byte { return bytes.Repeat([]byte{0x08, 1}, n) },
		"names":              func(n int) []byte { return bytes.Repeat([]byte{0x1a, 1, 'x'}, n) },
		"both":               func(n int) []byte { return append(packed(1, n/2), packed(2, n-n/2)...) },
	} {
		for _, parse := range []func([]byte) error{
			func(b []byte) error { _, err := journal.ParseFuture(b); return err },
			func(b []byte) error { _, err := journal.ParseSuspension(b, 5); return err },
			func(b []byte) error {
				_, err := journal.ParseSuspension(protowire.AppendBytes([]byte{0x22}, b), 7)
				return err
			},
		} {
			require.NoError(t, parse(leaves(journal.MaxLeaves)), name)
			require.ErrorIs(t, parse(leaves(journal.MaxLeaves+1)), journal.ErrPayload, name)
		}
	}
}
