package membership

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNewProcessResetsSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := newTable()
		since := func(m Member) time.Duration {
			time.Sleep(time.Minute)
			tab.put(m)
			got, ok := tab.get(m.Name)
			require.True(t, ok)
			return time.Since(got.Since)
		}
		first := time.Now()
		m := Member{Name: "n", Incarnation: "1", Started: first}
		require.Zero(t, since(m))
		m.Address = "elsewhere"
		require.Equal(t, time.Minute, since(m), "only the description changed")
		m.Started = time.Now()
		require.Zero(t, since(m), "restart went unnoticed")
		m.Incarnation = "2"
		require.Zero(t, since(m))
		require.Equal(t, time.Minute, since(m))
	})
}
