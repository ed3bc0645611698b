package budget

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const mib = 1 << 20

func TestOneConnectionHasItsShareAndAllHaveTheLimit(t *testing.T) {
	b := New(8*mib, 4*mib)
	first, second, third := b.Account(), b.Account(), b.Account()
	require.True(t, first.Reserve(3*mib))
	require.False(t, first.Reserve(2*mib), "beyond the share")
	require.True(t, first.Reserve(mib))
	require.True(t, second.Reserve(4*mib))
	require.False(t, third.Reserve(mib), "beyond the limit")
	require.True(t, third.Reserve(Small), "the reserve is for small bodies")
	used, refused := b.Stats()
	require.EqualValues(t, 8*mib+Small, used)
	require.EqualValues(t, 2, refused)
	first.Release(4 * mib)
	require.True(t, third.Reserve(mib))
}

func TestAChargeIsNotRefusedAndKeepsOthersOut(t *testing.T) {
	b := New(mib, mib)
	first, second := b.Account(), b.Account()
	first.Charge(3 * mib)
	require.False(t, second.Reserve(1))
	first.Release(3 * mib)
	require.True(t, second.Reserve(mib))
}

func TestRetryAfterGrowsWithTheTimeThatTheBudgetIsFull(t *testing.T) {
	b := New(8*mib, 4*mib)
	now := time.Unix(1000, 0)
	b.now = func() time.Time { return now }
	first, second := b.Account(), b.Account()
	require.Equal(t, time.Second, first.RetryAfter())
	require.True(t, first.Reserve(4*mib))
	require.False(t, first.Reserve(mib), "beyond the share")
	now = now.Add(5 * time.Second)
	require.False(t, first.Reserve(mib))
	require.Equal(t, 5*time.Second, first.RetryAfter())
	require.True(t, first.Full())
	require.Equal(t, time.Second, second.RetryAfter(), "the share of another connection")
	require.False(t, second.Full())
	second.Charge(5 * mib)
	require.True(t, second.Full())
	now = now.Add(time.Hour)
	require.Equal(t, 30*time.Second, second.RetryAfter())
	first.Release(mib)
	require.True(t, first.Full(), "less than half has become free")
	first.Release(3 * mib)
	require.True(t, first.Full(), "the node is still full")
	second.Release(mib)
	require.False(t, first.Full())
	require.Equal(t, time.Second, first.RetryAfter())
}

// Responses may use the reserve, wait for the rest in order, and are granted what others
// release.
func TestResponsesWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(8*mib, 8*mib)
		request, first, second := b.Account(), b.Account(), b.Account()
		require.True(t, request.Reserve(8*mib))
		require.True(t, first.ReserveResponse(2*mib), "the reserve")
		require.False(t, second.ReserveResponse(mib))
		granted := make(chan int64, 2)
		for _, n := range []int64{4 * mib, 3 * mib} {
			go func() {
				require.True(t, second.AwaitResponse(t.Context(), n))
				granted <- n
			}()
			synctest.Wait()
		}
		require.Empty(t, granted)
		request.Release(5 * mib)
		synctest.Wait()
		require.EqualValues(t, 4*mib, <-granted, "the one that has waited longer")
		require.Empty(t, granted)

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.False(t, second.AwaitResponse(short, 7*mib))
		request.Release(3 * mib)
		synctest.Wait()
		require.EqualValues(t, 3*mib, <-granted)
		first.Release(2 * mib)
		second.Release(7 * mib)
		used, _ := b.Stats()
		require.Zero(t, used)
		require.Empty(t, b.waiting)
	})
}

// Small responses that follow each other do not starve a large one, except on a connection of its
// own.
func TestSmallResponsesDoNotStarveALargeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(8*mib, 8*mib)
		await := func(a *Account, n int64) chan struct{} {
			granted := make(chan struct{})
			go func() {
				require.True(t, a.AwaitResponse(t.Context(), n))
				close(granted)
			}()
			synctest.Wait()
			return granted
		}
		isGranted := func(c chan struct{}) bool {
			synctest.Wait()
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		small := b.Account()
		require.True(t, isGranted(await(small, 5*mib)))
		large := await(b.Account(), 8*mib)
		var waiting []chan struct{}
		for range 3 {
			waiting = append(waiting, await(small, 2*mib))
		}
		require.False(t, isGranted(large))
		require.False(t, isGranted(waiting[0]), "behind the large one")
		small.Release(5 * mib)
		require.True(t, isGranted(large))
		require.True(t, isGranted(waiting[0]))
		require.False(t, isGranted(waiting[1]))
		small.Release(2 * mib)
		require.True(t, isGranted(waiting[1]))
		small.Release(2 * mib)
		require.True(t, isGranted(waiting[2]))
	})
}

// A response whose connection has used up its share does not delay those of others.
func TestAFullConnectionDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(80*mib, 4*mib)
		full := b.Account()
		require.True(t, full.Reserve(4*mib))
		ctx, cancel := context.WithCancel(t.Context())
		go full.AwaitResponse(ctx, 4*mib)
		go b.Account().AwaitResponse(ctx, 100*mib) // never fits
		synctest.Wait()
		require.True(t, b.Account().AwaitResponse(ctx, 4*mib))
		cancel()
		synctest.Wait()
		require.Empty(t, b.waiting)
	})
}

func TestWithoutABudgetNothingIsRefused(t *testing.T) {
	var none *Budget
	require.True(t, none.Account().Reserve(1<<40))
}

// Whatever is reserved and released, limits hold and nothing is lost.
func TestReservationsStayWithinLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New(10*mib, 4*mib)
		accounts := []*Account{b.Account(), b.Account(), b.Account(), b.Account()}
		held := make([][]int64, len(accounts))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, len(accounts)-1).Draw(t, "account")
			if n := len(held[i]); n > 0 && rapid.Bool().Draw(t, "release") {
				accounts[i].Release(held[i][n-1])
				held[i] = held[i][:n-1]
			} else if n := rapid.Int64Range(1, 5*mib).Draw(t, "size"); accounts[i].Reserve(n) {
				held[i] = append(held[i], n)
			}
			total := int64(0)
			for i, list := range held {
				own := int64(0)
				for _, n := range list {
					own += n
				}
				require.Equal(t, own, accounts[i].held)
				require.LessOrEqual(t, own, int64(5*mib))
				total += own
			}
			used, _ := b.Stats()
			require.Equal(t, total, used)
			require.LessOrEqual(t, used, int64(10*mib+10*mib/reserve))
		}
	})
}
