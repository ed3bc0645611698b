package endpoint

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// greetingOf is the first frame of a server, and another one after it.
func greetingOf(t *testing.T, settings ...http2.Setting) []byte {
	var b bytes.Buffer
	f := http2.NewFramer(&b, nil)
	require.NoError(t, f.WriteSettings(settings...))
	require.NoError(t, f.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20}))
	return b.Bytes()
}

func TestTheFirstFrameSizeSettingIsLowered(t *testing.T) {
	around := func(size uint32) []byte {
		return greetingOf(t,
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 250},
			http2.Setting{ID: http2.SettingMaxFrameSize, Val: size},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	}
	sent, want := around(1<<20), around(16<<10)
	for piece := 1; piece <= len(sent); piece++ {
		got := bytes.Clone(sent)
		var g greeting
		for i := 0; i < len(got); i += piece {
			g.lowerFrameSize(got[i:min(i+piece, len(got))])
		}
		require.Equal(t, want, got, "read in pieces of %d bytes", piece)
		require.True(t, g.over())
	}
}

func TestOtherFirstFramesAreNotChanged(t *testing.T) {
	sent := []byte{0, 0, 6, 1, 0, 0, 0, 0, 1, 0, 5, 1, 2, 3, 4}
	got := bytes.Clone(sent)
	var g greeting
	g.lowerFrameSize(got)
	require.Equal(t, sent, got)
	require.True(t, g.over())
}
