package ingress

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A body of unknown length takes about twice its length: as it arrives, and in the
// journal entry.
func TestBodiesOfUnknownLengthAreReadInParts(t *testing.T) {
	s := New(Config{RequestSizeLimit: 32 << 20}, nil, nil, slog.New(slog.DiscardHandler))
	read := func(content []byte) ([]byte, error) {
		r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(bytes.NewReader(content)))
		require.EqualValues(t, -1, r.ContentLength)
		_, body, err := s.readInput(httptest.NewRecorder(), r, nil, newReservation(r))
		return body, err
	}
	for _, size := range []int{0, 1, bodyChunk, pooledBody - 1, pooledBody, pooledBody + 1, 2*pooledBody + bodyChunk, 32 << 20} {
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(i * 31 >> 8)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		body, err := read(content)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, body), "%d bytes", size)
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(2*size+32*pooledBody), "%d bytes", size)
	}
	_, err := read(make([]byte, 32<<20+1))
	require.ErrorContains(t, err, "ingress.request-size-limit")
}
