package query

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/access"
)

const slotTimeout = 2 * time.Second

func TestOneClientLeavesASlotForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(4)
		for range 3 {
			require.NoError(t, s.acquire(t.Context(), "ada", slotTimeout))
		}
		err := s.acquire(t.Context(), "ada", slotTimeout)
		require.ErrorIs(t, err, ErrBusy)
		require.ErrorContains(t, err, "3 of this client, which leaves one slot of 4 for others (admin.query-engine.concurrency)")
		before := time.Now()
		require.NoError(t, s.acquire(t.Context(), "bob", slotTimeout))
		require.Equal(t, before, time.Now(), "without a wait")
		require.ErrorIs(t, s.acquire(t.Context(), "cleo", slotTimeout), ErrBusy)
		for range 3 {
			s.release("ada")
		}
		s.release("bob")
		require.Empty(t, s.clients)
		require.Empty(t, s.waiting)
		require.Zero(t, s.used)
	})
}

// A client whose queries wait in great number does not delay those of others, not even with one slot.
func TestSlotsAreSharedFairly(t *testing.T) {
	for _, limit := range []int{1, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(limit)
			flood := func(client access.Client, queries int, duration time.Duration) (ended *int) {
				ended = new(int)
				for range queries {
					go func() {
						if s.acquire(t.Context(), client, time.Hour) == nil {
							time.Sleep(duration)
							s.release(client)
							*ended++
						}
					}()
				}
				synctest.Wait()
				return ended
			}
			flood("ada", 1000, time.Second)
			done := flood("bob", 10, time.Second)
			time.Sleep(21 * time.Second)
			synctest.Wait()
			require.Equal(t, 10, *done, "with %d slots", limit)
			time.Sleep(1000 * time.Second)
			synctest.Wait()
			require.Empty(t, s.clients)
		})
	}
}
