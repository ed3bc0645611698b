package endpoint

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"pgregory.net/rapid"
)

func TestNoErrorResetsBecomeTheEndOfTheBody(t *testing.T) {
	var sent bytes.Buffer
	sent.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&sent, nil)
	require.NoError(t, framer.WriteSettings())
	require.NoError(t, framer.WriteData(1, false, bytes.Repeat([]byte{0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 0}, 7)))
	require.NoError(t, framer.WriteRSTStream(1, http2.ErrCodeNo))
	require.NoError(t, framer.WriteRSTStream(3, http2.ErrCodeCancel))
	require.NoError(t, framer.WriteRSTStream(5, http2.ErrCodeNo))
	require.NoError(t, framer.WriteData(7, true, nil))

	var f resetFilter
	got := f.pass(nil, sent.Bytes())
	require.Equal(t, http2.ClientPreface, string(got[:prefaceLen]))
	reader := http2.NewFramer(io.Discard, bytes.NewReader(got[prefaceLen:]))
	var seen []string
	for {
		frame, err := reader.ReadFrame()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		seen = append(seen, frame.Header().String())
	}
	require.Equal(t, []string{
		"[FrameHeader SETTINGS len=0]", "[FrameHeader DATA stream=1 len=91]", "[FrameHeader DATA flags=END_STREAM stream=1 len=0]",
		"[FrameHeader RST_STREAM stream=3 len=4]", "[FrameHeader DATA flags=END_STREAM stream=5 len=0]",
		"[FrameHeader DATA flags=END_STREAM stream=7 len=0]",
	}, seen)
}

// Frames stay intact however writes split them; a split reset is not replaced.
func TestResetFilterKeepsFramesIntact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sent bytes.Buffer
		sent.WriteString(http2.ClientPreface)
		framer := http2.NewFramer(&sent, nil)
		var want []string
		for range rapid.IntRange(1, 20).Draw(t, "frames") {
			stream := rapid.Uint32Range(1, 9).Draw(t, "stream")
			if rapid.Bool().Draw(t, "data") {
				data := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 3, 4}), 0, 40).Draw(t, "payload")
				require.NoError(t, framer.WriteData(stream, false, data))
				want = append(want, string(data))
			} else {
				require.NoError(t, framer.WriteRSTStream(stream, http2.ErrCodeNo))
			}
		}
		var f resetFilter
		var got []byte
		for b := sent.Bytes(); len(b) > 0; {
			n := rapid.IntRange(1, len(b)).Draw(t, "cut")
			got, b = f.pass(got, b[:n]), b[n:]
		}
		reader := http2.NewFramer(io.Discard, bytes.NewReader(got[prefaceLen:]))
		var data []string
		for {
			frame, err := reader.ReadFrame()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if d, ok := frame.(*http2.DataFrame); ok && !d.StreamEnded() {
				data = append(data, string(d.Data()))
			}
		}
		require.Equal(t, want, data)
	})
}
