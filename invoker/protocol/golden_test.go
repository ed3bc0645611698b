package protocol

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

func unhex(t testing.TB, text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return b
}

func exampleID(t testing.TB) ids.Invocation {
	return ids.Invocation(unhex(t, "0123456789abcdef00112233445566778899aabbccddeeff"))
}

const startBody = "0a180123456789abcdef00112233445566778899aabbccddeeff1226696e765f316b41743074397071376742374d57634b736a756b636f343861753969633333753818012801"

func TestStartBytes(t *testing.T) {
	id := exampleID(t)
	info := StartInfo{Version: V5, ID: id, RandomSeed: id.RandomSeed(), KnownEntries: 1, PartialState: true}
	require.Equal(t, "0000000000000046"+startBody, hex.EncodeToString(AppendStart(nil, &info)))

	info.Version = V6
	seed := protowire.AppendVarint([]byte{0x48}, id.RandomSeed())
	got := AppendStart([]byte("before"), &info)
	require.Equal(t, "before", string(got[:6]))
	require.Equal(t, startBody+hex.EncodeToString(seed), hex.EncodeToString(got[6+HeaderLen:]))
	require.Equal(t, AppendHeader(nil, Start, 0x46+len(seed)), got[6:6+HeaderLen])
}

func TestStartWithStateAndKey(t *testing.T) {
	info := StartInfo{
		Version: V5, ID: exampleID(t), KnownEntries: 3, Key: "obj", RetryCount: 2, SinceLastEntry: 300,
		State: []machine.StateEntry{{Key: []byte("count"), Value: []byte("5")}, {Key: []byte("empty")}},
	}
	got := hex.EncodeToString(AppendStart(nil, &info))
	body := strings.TrimSuffix(startBody, "18012801")
	require.Equal(t, body+"1803"+"220a0a05636f756e74120135"+"22070a05656d707479"+"32036f626a"+"3802"+"40ac02", got[2*HeaderLen:])
}

func TestStartOfVersion7(t *testing.T) {
	empty := ""
	info := StartInfo{Version: V7, ID: exampleID(t), KnownEntries: 1, IdempotencyKey: &empty, Scope: "s", LimitKey: "l"}
	require.True(t, strings.HasSuffix(hex.EncodeToString(AppendStart(nil, &info)), "520173"+"5a016c"+"6200"))
	info.Version = V6
	require.False(t, strings.HasSuffix(hex.EncodeToString(AppendStart(nil, &info)), "6200"))
}

func TestFrameBytes(t *testing.T) {
	require.Equal(t, unhex(t, "0400000000000008"), AppendHeader(nil, journal.Input, 8))
	require.Equal(t, unhex(t, "0007000000000002 0801"), AppendRunAck(nil, 1))
}

// The messages of the protocol's worked sequences.
const (
	outputFrame  = "0401000000000008 72060a0422686922"
	endFrame     = "0003000000000000"
	runFrame     = "0411000000000005 5801620172"
	proposal6    = "0005000000000005 0801720131"
	proposal7    = "0005800000000005 0801720131"
	sleepFrame   = "040c000000000009 0880d095ffbc315802"
	suspension6  = "0001000000000006 0a0102120101"
	suspension7  = "000100000000000a 22080a01021201012801"
	suspension7w = "000100000000000e 220c12010122050a010228012801"
)

func decodeOne(t testing.TB, text string) Message {
	var d Decoder
	d.Feed(unhex(t, text))
	m, ok, err := d.Next()
	require.NoError(t, err)
	require.True(t, ok)
	require.False(t, d.Partial())
	return m
}

func TestWorkedMessagesAreParsed(t *testing.T) {
	require.Equal(t, journal.Output, decodeOne(t, outputFrame).Type)
	require.Equal(t, Message{Type: End, Payload: []byte{}}, decodeOne(t, endFrame))

	m := decodeOne(t, proposal6)
	require.False(t, m.WantAck)
	completion, notification, err := ParseRunProposal(m.Payload)
	require.NoError(t, err)
	require.EqualValues(t, 1, completion)
	require.Equal(t, unhex(t, "08012a030a0131"), notification)
	require.True(t, decodeOne(t, proposal7).WantAck)

	for _, text := range []string{outputFrame, runFrame, sleepFrame} {
		m := decodeOne(t, text)
		_, err := ParseCommand(m.Type, m.Payload)
		require.NoError(t, err, text)
	}
	flat := &journal.Future{Completions: []uint32{2}, Signals: []uint32{1}, Combinator: journal.CombineFirstCompleted}
	await, err := ParseSuspension(V6, decodeOne(t, suspension6).Payload)
	require.NoError(t, err)
	require.Equal(t, flat, await)
	await, err = ParseSuspension(V7, decodeOne(t, suspension7).Payload)
	require.NoError(t, err)
	require.Equal(t, flat, await)
	await, err = ParseSuspension(V7, decodeOne(t, suspension7w).Payload)
	require.NoError(t, err)
	require.Equal(t, []uint32{1}, await.Signals)
	require.Equal(t, []uint32{2}, await.Nested[0].Completions)
}
