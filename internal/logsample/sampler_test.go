package logsample

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMessagesOfOneKindAreBounded(t *testing.T) {
	const limit, window = 10, 10 * time.Second
	s := New[string](limit, window, 100)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	written := 0
	for range 100 {
		if held, ok := s.Admit("down", now); ok {
			require.Zero(t, held)
			written++
		}
	}
	require.Equal(t, limit, written)
	_, ok := s.Admit("odd", now)
	require.True(t, ok, "another kind")
	_, ok = s.Admit("down", now.Add(window-1))
	require.False(t, ok)
	held, ok := s.Admit("down", now.Add(window))
	require.True(t, ok)
	require.Equal(t, 100-limit+1, held)
	held, ok = s.Admit("down", now.Add(window))
	require.True(t, ok)
	require.Zero(t, held)
}

func TestKindsAreBounded(t *testing.T) {
	const most = 10
	s, now := New[string](1, time.Minute, most), time.Now()
	for i := range 3 * most {
		s.Admit(strconv.Itoa(i), now)
	}
	require.LessOrEqual(t, len(s.kinds), most)
	_, ok := s.Admit(strconv.Itoa(3*most-1), now)
	require.False(t, ok, "a known kind does not make the sampler forget")
}
