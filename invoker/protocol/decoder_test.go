package protocol

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/internal/errcode"
	"platform/partition/journal"
	"platform/proto/service"
)

func TestMessagesSurviveAnySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var wire []byte
		var want []Message
		for range rapid.IntRange(0, 8).Draw(t, "messages") {
			m := Message{
				Type:    Type(rapid.Uint16().Draw(t, "type")),
				Payload: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload"),
				WantAck: rapid.Bool().Draw(t, "ack"),
			}
			at := len(wire)
			wire = append(AppendHeader(wire, m.Type, len(m.Payload)), m.Payload...)
			if m.WantAck {
				wire[at+2] |= 0x80
			}
			wire[at+3] |= rapid.Byte().Draw(t, "reserved") // to be ignored
			want = append(want, m)
		}
		var d Decoder
		var got []Message
		for rest := wire; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			piece := slices.Clone(rest[:n])
			d.Feed(piece)
			clear(piece) // Feed must not retain it
			rest = rest[n:]
			for {
				m, ok, err := d.Next()
				require.NoError(t, err)
				if !ok {
					break
				}
				got = append(got, m)
			}
		}
		require.False(t, d.Partial())
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i].Type, got[i].Type)
			require.Equal(t, want[i].WantAck, got[i].WantAck)
			require.Equal(t, string(want[i].Payload), string(got[i].Payload))
		}
	})
}

func TestLimitIsCheckedOnTheHeader(t *testing.T) {
	d := Decoder{Limit: 100}
	d.Feed(AppendHeader(nil, journal.SetState, 99))
	_, ok, err := d.Next()
	require.NoError(t, err)
	require.False(t, ok)
	require.True(t, d.Partial())

	d = Decoder{Limit: 100}
	d.Feed(AppendHeader(nil, journal.SetState, 100))
	_, _, err = d.Next()
	code, _ := errcode.Of(err)
	require.Equal(t, errcode.RT0003, code)
	require.ErrorContains(t, err, "SetState")

	// Bytes that are not of the protocol have a length over the limit, too.
	d = Decoder{Limit: 100}
	d.Feed([]byte("<html><body>"))
	_, _, err = d.Next()
	code, _ = errcode.Of(err)
	require.Equal(t, errcode.RT0012, code)
	require.ErrorContains(t, err, "unexpected message 0x3c68: the response is not in the service protocol")
}

func TestErrorMessage(t *testing.T) {
	index, name, kind, delay := uint32(3), "charge", uint32(journal.Run), uint64(1500)
	m := service.ErrorMessage{
		Code: 500, Message: "boom", Stacktrace: "at x", RelatedCommandIndex: &index, RelatedCommandName: &name,
		RelatedCommandType: &kind, NextRetryDelay: &delay, Behavior: service.ErrorBehavior_PAUSE,
	}
	payload, err := m.MarshalVT()
	require.NoError(t, err)
	f, err := ParseError(V7, payload)
	require.NoError(t, err)
	want := 1500 * time.Millisecond
	require.Equal(t, Failure{
		Code: 500, Message: "boom", Stacktrace: "at x", RelatedIndex: &index, RelatedName: "charge",
		RelatedType: journal.Run, NextRetryDelay: &want, Behavior: Pause,
	}, f)
	f, err = ParseError(V6, payload)
	require.NoError(t, err)
	require.Equal(t, Retry, f.Behavior, "version 6 has no behaviour")

	delay = 1<<64 - 1
	payload, err = m.MarshalVT()
	require.NoError(t, err)
	f, err = ParseError(V6, payload)
	require.NoError(t, err)
	require.Equal(t, maxDelay, *f.NextRetryDelay)
}

func TestCommandsThatCannotBeStored(t *testing.T) {
	for name, c := range map[string]struct {
		of      Type
		payload string
	}{
		"broken field":             {journal.SetState, "0aff"},
		"sleep without completion": {journal.Sleep, "0801"},
		"run without completion":   {journal.Run, "620172"},
		"output without result":    {journal.Output, "620172"},
		"eager read w/o result":    {journal.GetEagerState, "0a0161"},
		"lazy read w/o completion": {journal.GetLazyState, "0a0161"},
		"call without id":          {journal.Call, "0a0161 5802"},
		"call without completion":  {journal.Call, "0a0161 5002"},
		"signal without id":        {journal.SendSignal, "0a0161 2200"},
		"signal without result":    {journal.SendSignal, "0a0161 1001"},
		"attach without target":    {journal.AttachInvocation, "5801"},
		"input":                    {journal.Input, "7200"},
		"unassigned":               {0x040F, ""},
		"custom":                   {0xFC00, ""},
	} {
		_, err := ParseCommand(c.of, unhex(t, c.payload))
		code, _ := errcode.Of(err)
		require.Equal(t, errcode.RT0012, code, name)
	}
}

func TestVersionChoice(t *testing.T) {
	ours := ServerRange(false)
	for _, c := range []struct {
		offered Range
		want    Version
	}{{Range{5, 7}, V6}, {Range{5, 5}, V5}, {Range{6, 9}, V6}, {Range{1, 6}, V6}} {
		v, err := Choose(ours, c.offered)
		require.NoError(t, err)
		require.Equal(t, c.want, v)
	}
	for _, offered := range []Range{{7, 7}, {1, 4}} {
		_, err := Choose(ours, offered)
		require.ErrorIs(t, err, errNoVersion)
	}
	v, err := Choose(ServerRange(true), Range{5, 8})
	require.NoError(t, err)
	require.Equal(t, V7, v)
}

// FuzzDecode searches for bytes from an endpoint that make the decoder panic or return invalid
// messages.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{outputFrame, endFrame, runFrame, proposal6, proposal7, sleepFrame, suspension6, suspension7, suspension7w} {
		f.Add(unhex(f, text), 3)
	}
	f.Fuzz(func(t *testing.T, wire []byte, cut int) {
		cut = min(max(cut, 0), len(wire))
		d := Decoder{Limit: 1 << 16}
		for _, piece := range [][]byte{wire[:cut], wire[cut:]} {
			d.Feed(piece)
			for {
				m, ok, err := d.Next()
				if err != nil {
					return
				}
				if !ok {
					break
				}
				if len(m.Payload) >= d.Limit {
					t.Fatalf("a message of %d bytes passed", len(m.Payload))
				}
				parseAll(t, &m)
			}
		}
	})
}

func parseAll(t *testing.T, m *Message) {
	_, commandErr := ParseCommand(m.Type, m.Payload)
	if commandErr == nil && !m.Type.IsCommand() {
		t.Fatalf("%s passed as a command", Name(m.Type))
	}
	for v := V5; v <= V7; v++ {
		if await, err := ParseSuspension(v, m.Payload); err == nil && await.Empty() {
			t.Fatal("a suspension that waits for nothing passed")
		}
		_, _ = ParseError(v, m.Payload)
	}
	_, _ = ParseAwaitingOn(m.Payload)
	if completion, notification, err := ParseRunProposal(m.Payload); err == nil {
		n, err := journal.ParseNotification(notification)
		require.NoError(t, err)
		require.Equal(t, journal.Completion(completion), n.ID)
	}
}

func TestLongMessagesAreRarelyCopied(t *testing.T) {
	const size = 8 << 20
	message := append(AppendHeader(nil, journal.Output, size), make([]byte, size)...)
	d := Decoder{Limit: 32 << 20}
	buffers, fed := map[int]bool{}, 0
	for part := range slices.Chunk(message, 64<<10) {
		d.Feed(part)
		fed += len(part)
		require.LessOrEqual(t, d.Size(), growth*fed, "an announcement alone costs nothing")
		buffers[d.Size()] = true
	}
	require.LessOrEqual(t, len(buffers), 5)
	require.Equal(t, HeaderLen+size+following, d.Size())
	m, ok, err := d.Next()
	require.NoError(t, err)
	require.True(t, ok)
	require.Len(t, m.Payload, size)
	require.Zero(t, d.Size())
}

func TestShortMessagesAfterALongOneCostNoCopyOfIt(t *testing.T) {
	long := append(AppendHeader(nil, Start, 1<<20), make([]byte, 1<<20)...)
	stream := append(long, AppendHeader(nil, End, 0)...)
	var d Decoder
	for len(stream) > 0 {
		held := cap(d.pending)
		n := min(len(stream), 16<<10)
		d.Feed(stream[:n])
		stream = stream[n:]
		if held >= len(long) {
			require.Equal(t, held, cap(d.pending), "the buffer was replaced")
		}
	}
	m, ok, err := d.Next()
	require.NoError(t, err)
	require.True(t, ok)
	require.Len(t, m.Payload, 1<<20)
	m, ok, err = d.Next()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, End, m.Type)
}
