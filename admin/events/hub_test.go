package events

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newTestHub() *Hub {
	return NewHub(Config{MaxSubscriptions: 3, MaxSources: 3, MaxClientSubscriptions: 10, MaxClientSources: 10, ReadTimeout: time.Second})
}

// counted is a source whose version is a counter, and the number of its reads.
type counted struct {
	version, reads atomic.Uint64
	failing        atomic.Bool
}

func (c *counted) source(name string) Source {
	return Source{Name: name, Interval: 250 * time.Millisecond, Read: func(context.Context) (Version, error) {
		c.reads.Add(1)
		if c.failing.Load() {
			return 0, errors.ErrUnsupported
		}
		return Version(c.version.Load()), nil
	}}
}

func changed(s *Subscription) bool {
	select {
	case <-s.Changed():
		return true
	default:
		return false
	}
}

func TestViewersShareAPoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newTestHub(), new(counted)
		c.version.Store(1)
		first, err := h.Subscribe("ada", []Source{c.source("a"), c.source("a")})
		require.NoError(t, err)
		second, err := h.Subscribe("ada", []Source{c.source("a")})
		require.NoError(t, err)
		time.Sleep(time.Second - time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 4, c.reads.Load())
		require.Equal(t, []Version{1, 1}, first.Versions())
		require.True(t, changed(first) && changed(second))

		c.version.Add(100)
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		require.True(t, changed(first) && changed(second))
		require.Equal(t, []Version{101}, second.Versions())
		time.Sleep(time.Second)
		synctest.Wait()
		require.False(t, changed(first))

		first.Close()
		second.Close()
		reads := c.reads.Load()
		time.Sleep(time.Second)
		require.Equal(t, reads, c.reads.Load(), "without viewers")
		require.Empty(t, h.pollers)
	})
}

func TestAPollerContinuesAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newTestHub(), new(counted)
		c.version.Store(1)
		s, err := h.Subscribe("ada", []Source{c.source("a")})
		require.NoError(t, err)
		defer s.Close()
		synctest.Wait()
		require.True(t, changed(s))
		c.failing.Store(true)
		c.version.Store(2)
		time.Sleep(time.Second)
		synctest.Wait()
		require.False(t, changed(s))
		require.Equal(t, []Version{1}, s.Versions())
		c.failing.Store(false)
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		require.True(t, changed(s))
		require.Equal(t, []Version{2}, s.Versions())
	})
}

func TestSubscriptionsAndSourcesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newTestHub(), new(counted)
		var open []*Subscription
		for i := range 3 {
			s, err := h.Subscribe("ada", []Source{c.source(fmt.Sprint(i))})
			require.NoError(t, err)
			open = append(open, s)
		}
		_, err := h.Subscribe("ada", []Source{c.source("0")})
		require.ErrorIs(t, err, errTooManySubscriptions)
		open[0].Close()
		_, err = h.Subscribe("ada", []Source{c.source("3"), c.source("4")})
		require.ErrorIs(t, err, errTooManySources)
		again, err := h.Subscribe("ada", []Source{c.source("3"), c.source("1")})
		require.NoError(t, err)
		for _, s := range append(open[1:], again) {
			s.Close()
		}
		require.Empty(t, h.pollers)
		require.Zero(t, h.subscriptions)
	})
}

func TestPositions(t *testing.T) {
	p := Position{1, 0, 255}
	require.Equal(t, "1.0.ff", p.String())
	require.Equal(t, p, ParsePosition("1.0.ff", 3))
	for _, id := range []string{"", "1.0", "1.0.ff.2", "1.0.x", "1.0.-1", "1..2"} {
		require.Equal(t, Position{0, 0, 0}, ParsePosition(id, 3), id)
	}
	require.NotEqual(t, Unknown, VersionOf(nil))
}

// One client has its share of the subscriptions and sources, whatever it views.
func TestOneClientHasItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := NewHub(Config{MaxSubscriptions: 10, MaxSources: 10, MaxClientSubscriptions: 2, MaxClientSources: 2, ReadTimeout: time.Second}), new(counted)
		first, err := h.Subscribe("ada", []Source{c.source("a"), c.source("a"), c.source("b")})
		require.NoError(t, err)
		_, err = h.Subscribe("ada", []Source{c.source("a"), c.source("c")})
		require.ErrorIs(t, err, errClientSources)
		second, err := h.Subscribe("ada", []Source{c.source("b")})
		require.NoError(t, err)
		_, err = h.Subscribe("ada", nil)
		require.ErrorIs(t, err, errClientSubscriptions)
		other, err := h.Subscribe("bob", []Source{c.source("c"), c.source("d")})
		require.NoError(t, err, "others are not concerned")

		first.Close()
		third, err := h.Subscribe("ada", []Source{c.source("b"), c.source("c")})
		require.NoError(t, err, "a closed subscription makes room")
		for _, s := range []*Subscription{second, third, other} {
			s.Close()
		}
		require.Empty(t, h.clients)
		require.Empty(t, h.pollers)
	})
}
