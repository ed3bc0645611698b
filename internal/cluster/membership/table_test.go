package membership

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNewProcessResetsSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := newTable(defaultProfile())
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

// TestReportedDeathOfARespondingMemberIsIgnored reports deaths as a node does that was isolated: it
// considers the others dead just when the network works again.
func TestReportedDeathOfARespondingMemberIsIgnored(t *testing.T) {
	m := Member{Name: "n", Incarnation: "1"}
	state := func(tab *table) State {
		synctest.Wait()
		got, _ := tab.get("n")
		return got.State
	}
	for _, c := range []struct {
		name     string
		silent   time.Duration // since the last acknowledgement
		refuted  bool
		now, end State
	}{
		{"refuted", 600 * time.Millisecond, true, Alive, Alive},
		{"not refuted", 600 * time.Millisecond, false, Alive, Dead},
		{"silent", 900 * time.Millisecond, false, Dead, Dead},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tab := newTable(defaultProfile())
				tab.put(m)
				tab.noteAck("n")
				time.Sleep(c.silent)
				changes, stop := tab.watch()
				defer stop()
				tab.markDead("n", "1")
				require.Equal(t, c.now, state(tab))
				time.Sleep(200 * time.Millisecond)
				if c.refuted {
					tab.put(m)
					<-changes
				}
				time.Sleep(time.Second)
				require.Equal(t, c.end, state(tab))
			})
		})
	}
}
