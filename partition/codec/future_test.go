package codec

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"platform/internal/feature"
	"platform/partition/journal"
	"platform/partition/machine"
)

// nestedFuture returns a future of the given depth around a leaf.
func nestedFuture(levels int, leaf journal.Future) *journal.Future {
	for range levels - 1 {
		leaf = journal.Future{Nested: []journal.Future{leaf}, Combinator: journal.CombineAllCompleted}
	}
	return &leaf
}

func suspend(f *journal.Future) *machine.Progress {
	return &machine.Progress{Steps: []machine.Step{{Kind: machine.StepSuspend, Await: f}}}
}

func TestEncodeCommandRejectsTooDeepFutures(t *testing.T) {
	leaf := journal.Future{Signals: []uint32{1}}
	_, err := EncodeCommand(feature.Supported(), suspend(nestedFuture(journal.MaxDepth+1, leaf)))
	require.ErrorIs(t, err, errTooDeep)

	deepest := suspend(nestedFuture(journal.MaxDepth, leaf))
	b, err := EncodeCommand(feature.Supported(), deepest)
	require.NoError(t, err)
	_, got, err := Decode(Seal(feature.Level1, 1, 1, [][]byte{b}))
	require.NoError(t, err)
	require.Equal(t, []machine.Command{deepest}, got)
	record := AppendInvocation(nil, &machine.Invocation{Await: deepest.Steps[0].Await})
	inv, err := DecodeInvocation(record)
	require.NoError(t, err)
	require.Equal(t, deepest.Steps[0].Await, inv.Await)
}

// TestReadFutureRejectsTooDeepFutures includes a depth that would overflow the stack of a
// reader without a limit. The bytes are assembled here, because the writer rejects them too.
func TestReadFutureRejectsTooDeepFutures(t *testing.T) {
	for _, levels := range []int{journal.MaxDepth + 1, 1_000_000} {
		var reversed []byte // from the inside out
		for range levels {
			var length [binary.MaxVarintLen64]byte
			n := binary.PutUvarint(length[:], uint64(len(reversed)))
			slices.Reverse(length[:n])
			reversed = append(append(reversed, length[:n]...), fieldFutureNested<<3|byte(protowire.BytesType))
		}
		slices.Reverse(reversed)
		require.ErrorIs(t, readFuture(reversed, new(journal.Future)), ErrMalformed)
	}
}

func drawFuture(t *rapid.T, levels int) journal.Future {
	f := journal.Future{
		Completions: rapid.SliceOfN(rapid.Uint32(), 0, 70).Draw(t, "completions"),
		Signals:     rapid.SliceOfN(rapid.Uint32Range(0, 300), 0, 5).Draw(t, "signals"),
		Combinator:  journal.Combinator(rapid.Byte().Draw(t, "combinator")),
	}
	for range rapid.IntRange(0, 3).Draw(t, "names") {
		f.Names = append(f.Names, strings.Repeat("n", rapid.IntRange(0, 200).Draw(t, "length")))
	}
	if levels > 1 {
		for range rapid.IntRange(0, 3).Draw(t, "nested") {
			f.Nested = append(f.Nested, drawFuture(t, levels-1))
		}
	}
	return f
}

func TestSizesOfNestedFuturesAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFuture(t, 4)
		var w writer
		w.future(1, &f)
		require.Len(t, w.b, fieldSize(futureSizes(nil, &f)[0]))
	})
}

// BenchmarkDeepFuture has a large payload at the maximum depth: the most expensive future a
// handler can await.
func BenchmarkDeepFuture(b *testing.B) {
	leaf := journal.Future{Names: []string{strings.Repeat("n", 1<<20)}}
	c := suspend(nestedFuture(journal.MaxDepth, leaf))
	encoded, err := EncodeCommand(feature.Supported(), c)
	require.NoError(b, err)
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			_, _ = EncodeCommand(feature.Supported(), c)
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			var c machine.Command
			_ = readCommand(encoded, &c)
		}
	})
}
