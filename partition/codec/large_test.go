package codec

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/partition/journal"
	"platform/partition/machine"
)

func TestLargeCommandIsCopiedOnce(t *testing.T) {
	for _, size := range []int{1, largeCommand - 1000, largeCommand, 2<<20 - 150, 2 << 20, 3 << 20} {
		c := &machine.Progress{Attempt: 7, Steps: []machine.Step{{
			Kind: machine.StepCommand, Type: journal.Output, Payload: bytes.Repeat([]byte{1}, size),
		}}}
		b, err := EncodeCommand(feature.Supported(), c)
		require.NoError(t, err)
		sealed := Seal(feature.Level2, 1<<40, 1_700_000_000_000, [][]byte{b})
		require.Equal(t, isFramed(b), &sealed[0] == &b[0], "size %d", size)
		h, commands, err := Decode(sealed)
		require.NoError(t, err)
		require.Equal(t, machine.Header{Level: feature.Level2, Epoch: 1 << 40, Time: 1_700_000_000_000}, h)
		require.Equal(t, []machine.Command{c}, commands)

		// With other commands in the entry, the large one is unframed.
		lead := &machine.Lead{Epoch: 2, Node: "n"}
		small, err := EncodeCommand(feature.Supported(), lead)
		require.NoError(t, err)
		b, err = EncodeCommand(feature.Supported(), c)
		require.NoError(t, err)
		_, commands, err = Decode(Seal(feature.Level1, 3, 4, [][]byte{small, b}))
		require.NoError(t, err)
		require.Equal(t, []machine.Command{lead, c}, commands)
	}
}

func TestAppendCompletedAgreesWithAppendInvocation(t *testing.T) {
	for _, size := range []int{1, 100, 127, 128, 20_000} {
		key := "k"
		inv := &machine.Invocation{Attempt: 7, IdempotencyKey: &key, ExpiresAt: 1_700_000_000_000, Requests: []uint64{1, 2}}
		inv.Result = &journal.Result{Value: bytes.Repeat([]byte{7}, size)}
		head, tail := AppendCompleted(nil, inv)
		require.Equal(t, AppendInvocation(nil, inv), append(append(head, inv.Result.Value...), tail...))
	}
}

func TestAppendEntryHeadAgreesWithAppendEntry(t *testing.T) {
	for _, e := range []journal.Entry{{}, {Type: journal.Output}, {Type: journal.Input, AppendedAt: 1_700_000_000_000, Payload: make([]byte, 300)}} {
		require.Equal(t, AppendEntry(nil, &e), append(AppendEntryHead(nil, &e), e.Payload...))
		require.Len(t, AppendEntry(nil, &e), EntrySize(&e))
	}
}

// The strings of an invocation outlive its log entry, which must not keep a large input in memory.
func TestStringsOfALargeInvocationDoNotRetainItsEntry(t *testing.T) {
	key, text := "key", "text"
	c := &machine.Invoke{
		Target: machine.Target{Scope: text, Service: text, Key: text, Handler: text}, Source: machine.Source{CallerTarget: text, Subscription: text},
		IdempotencyKey: &key, LimitKey: text, Trace: machine.Trace{Parent: text, State: text, Baggage: text}, ServerVersion: text,
		Input: make([]byte, 1<<20),
	}
	b, err := EncodeCommand(feature.Supported(), c)
	require.NoError(t, err)
	entry := Seal(feature.Supported(), 1, 2, [][]byte{b})
	_, commands, err := Decode(entry)
	require.NoError(t, err)
	got := commands[0].(*machine.Invoke)
	got.Input = nil
	clear(entry)
	c.Input = nil
	require.Equal(t, c, got)
}

// Below the level of baggage an invocation is stored without it, since it need not fail.
func TestBaggageIsLeftOutBelowItsLevel(t *testing.T) {
	c := &machine.Invoke{Trace: machine.Trace{Parent: "p", Baggage: "user=1"}}
	_, err := EncodeCommand(feature.Level3, c)
	require.Error(t, err)
	b, err := EncodeCommand(feature.Level3, ForLevel(feature.Level3, c))
	require.NoError(t, err)
	got, err := DecodeCommand(b)
	require.NoError(t, err)
	require.Equal(t, machine.Trace{Parent: "p"}, got.(*machine.Invoke).Trace)
	require.Equal(t, "user=1", c.Trace.Baggage)
	require.Equal(t, machine.Command(c), ForLevel(feature.Level4, c))
}
