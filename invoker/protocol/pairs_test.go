package protocol

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/errcode"
	"platform/internal/limits"
	"platform/partition/journal"
)

// A small message with many headers or metadata takes a hundred times its size in memory.
func TestMessagesWithTooManyHeadersOrMetadataAreRefused(t *testing.T) {
	field := func(num protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), content)
	}
	id := protowire.AppendVarint(protowire.AppendTag(nil, 11, protowire.VarintType), 1)
	callee := bytes.Join([][]byte{id, protowire.AppendVarint(protowire.AppendTag(nil, 10, protowire.VarintType), 2)}, nil)
	signal := append(field(1, []byte("inv_1kAt0t9pq7gB7MWcKsjukco48au9ic33u8")), field(3, []byte("name"))...)
	for kind, c := range map[Type]struct{ base, pair, failure []byte }{
		journal.Call:              {base: callee, pair: field(4, nil)},
		journal.OneWayCall:        {base: callee, pair: field(5, nil)},
		journal.Output:            {failure: []byte{15}},
		ProposeRunCompletion:      {base: protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1), failure: []byte{15}},
		journal.SendSignal:        {base: signal, failure: []byte{6}},
		journal.CompletePromise:   {base: id, failure: []byte{3}},
		journal.CompleteAwakeable: {base: field(1, []byte("sign_1")), failure: []byte{3}},
	} {
		parse := func(n int) error {
			pairs := bytes.Repeat(c.pair, n)
			if c.failure != nil {
				half := bytes.Repeat(field(3, nil), n/2)
				num := protowire.Number(c.failure[0])
				pairs = append(field(num, half), field(num, append(half, bytes.Repeat(field(3, nil), n%2)...))...) // merged by decoders
			}
			payload := append(pairs, c.base...)
			if kind == ProposeRunCompletion {
				_, _, err := ParseRunProposal(payload)
				return err
			}
			_, err := ParseCommand(kind, payload)
			return err
		}
		require.NoError(t, parse(limits.Pairs), Name(kind))
		err := parse(limits.Pairs + 1)
		code, _ := errcode.Of(err)
		require.Equal(t, errcode.RT0003, code, "%s: %v", Name(kind), err)
		require.ErrorContains(t, err, "10001 headers or metadata", Name(kind))
	}
	// The decoder accepts a number that is too large, and reads what follows it.
	overflow := append(protowire.AppendTag(nil, 13, protowire.VarintType), bytes.Repeat([]byte{0xff}, 9)...)
	_, err := ParseCommand(journal.Call, append(append(overflow, 0x7f), append(bytes.Repeat(field(4, nil), limits.Pairs+1), callee...)...))
	code, _ := errcode.Of(err)
	require.Equal(t, errcode.RT0012, code, "%v", err)
}
