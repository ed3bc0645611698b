package otlp

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// uploads are the messages of requests.
type uploads struct {
	requests [][]string
	largest  int
	err      error
}

func (u *uploads) add(_ context.Context, encoded []byte) error {
	u.largest = max(u.largest, len(encoded))
	var request []string
	for len(encoded) > 0 {
		number, kind, n := protowire.ConsumeTag(encoded)
		if number != 2 || kind != protowire.BytesType {
			return errors.New("another field")
		}
		message, size := protowire.ConsumeString(encoded[n:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		request = append(request, message)
		encoded = encoded[n+size:]
	}
	u.requests = append(u.requests, request)
	return u.err
}

func add(m *Messages, text string) {
	if b, ok := m.Begin(); ok {
		m.End(append(b, text...))
	}
}

// TestMessagesOfAllSizesArrive has lengths that need one to four bytes.
func TestMessagesOfAllSizesArrive(t *testing.T) {
	u := &uploads{}
	m := NewMessages(Traces, 2, u.add, slog.New(slog.DiscardHandler))
	var want []string
	for _, size := range []int{0, 1, 127, 128, 300, 1<<14 - 1, 1 << 14, 1 << 19, 3 << 20, 500} {
		want = append(want, strings.Repeat("x", size))
	}
	for _, text := range want {
		add(m, text)
	}
	m.Close()
	require.Equal(t, want, slices.Concat(u.requests...))
	require.Equal(t, Counts{Exported: uint64(len(want))}, m.Counts())
}

// TestRequestsAreBounded fills many requests, whose buffers are reused.
func TestRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &uploads{}
		m := NewMessages(Traces, 2, u.add, slog.New(slog.DiscardHandler))
		text, sent := strings.Repeat("x", 1000), 0
		for range 20 {
			for range chunkSize / 1000 {
				add(m, text)
				sent++
			}
			synctest.Wait() // a full request is sent without delay
			require.Less(t, m.Counts().WaitingSize, chunkSize)
			require.LessOrEqual(t, len(m.spare), maxSpare)
		}
		m.Close()
		require.Len(t, slices.Concat(u.requests...), sent)
		require.LessOrEqual(t, u.largest, chunkSize)
		require.Zero(t, m.Counts().Waiting)
	})
}

// TestMessagesThatDoNotFitAreDropped has a collector that does not respond, and then fails.
func TestMessagesThatDoNotFitAreDropped(t *testing.T) {
	for size, want := range map[int]int{1000: MaxQueued, 10_000: (MaxQueuedSize-reserve)/10_004 + 1} {
		release := make(chan struct{})
		u := &uploads{err: errors.New("unavailable")}
		m := NewMessages(Traces, 2, func(ctx context.Context, encoded []byte) error {
			<-release
			return u.add(ctx, encoded)
		}, slog.New(slog.DiscardHandler))
		text := strings.Repeat("x", size)
		for range want + 100 {
			add(m, text)
		}
		n := m.Counts()
		require.Equal(t, uint64(100), n.Dropped, "%d bytes", size)
		require.Equal(t, want, n.Waiting)
		require.LessOrEqual(t, n.WaitingSize, MaxQueuedSize)
		close(release)
		m.Close()
		require.Equal(t, Counts{Failed: uint64(want), Dropped: 100}, m.Counts())
	}
}
