package budget

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// unit is the size of bodies that have no reserve.
const unit = 16 << 20

func TestOneConnectionHasItsShareAndAllHaveTheLimit(t *testing.T) {
	b := New(8*unit, 4*unit)
	first, second, third := b.Account(), b.Account(), b.Account()
	require.True(t, first.Reserve(3*unit))
	require.False(t, first.Reserve(2*unit), "beyond the share")
	require.True(t, first.Reserve(unit))
	require.True(t, second.Reserve(4*unit))
	require.False(t, third.Reserve(unit), "beyond the limit")
	require.True(t, third.Reserve(Small), "the reserve is for small bodies")
	used, refused := b.Stats()
	require.EqualValues(t, 8*unit+Small, used)
	require.EqualValues(t, 2, refused)
	first.Return(3 * unit)
	first.Return(unit)
	require.True(t, third.Reserve(unit))
}

func TestAChargeIsNotRefusedAndKeepsOthersOut(t *testing.T) {
	b := New(unit, unit)
	first, second := b.Account(), b.Account()
	first.Charge(3 * unit)
	require.False(t, second.Reserve(unit))
	first.Release(3 * unit)
	require.True(t, second.Reserve(unit))
}

func TestRetryAfterGrowsWithTheTimeThatTheBudgetIsFull(t *testing.T) {
	b := New(8*unit, 4*unit)
	now := time.Unix(1000, 0)
	b.now = func() time.Time { return now }
	first, second := b.Account(), b.Account()
	require.Equal(t, time.Second, first.RetryAfter())
	require.True(t, first.Reserve(4*unit))
	require.False(t, first.Reserve(unit), "beyond the share")
	now = now.Add(5 * time.Second)
	require.False(t, first.Reserve(unit))
	require.Equal(t, 5*time.Second, first.RetryAfter())
	require.True(t, first.Full())
	require.Equal(t, time.Second, second.RetryAfter(), "the share of another connection")
	require.False(t, second.Full())
	second.Charge(5 * unit)
	require.True(t, second.Full())
	now = now.Add(time.Hour)
	require.Equal(t, 30*time.Second, second.RetryAfter())
	first.Release(unit)
	require.True(t, first.Full(), "less than half has become free")
	first.Release(3 * unit)
	require.True(t, first.Full(), "the node is still full")
	second.Release(unit)
	require.False(t, first.Full())
	require.Equal(t, time.Second, first.RetryAfter())
}

// Responses may use the reserve, wait for the rest in order, and are granted what others
// release.
func TestResponsesWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(8*unit, 8*unit)
		request, first, second := b.Account(), b.Account(), b.Account()
		require.True(t, request.Reserve(8*unit))
		require.True(t, first.ReserveResponse(unit), "the reserve")
		require.False(t, second.ReserveResponse(unit))
		granted := make(chan int64, 2)
		for _, n := range []int64{4 * unit, 3 * unit} {
			go func() {
				require.True(t, second.AwaitResponse(t.Context(), n))
				granted <- n
			}()
			synctest.Wait()
		}
		require.Empty(t, granted)
		request.Release(5 * unit)
		synctest.Wait()
		require.EqualValues(t, 4*unit, <-granted, "the one that has waited longer")
		require.Empty(t, granted)

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.False(t, second.AwaitResponse(short, 7*unit))
		request.Release(3 * unit)
		synctest.Wait()
		require.EqualValues(t, 3*unit, <-granted)
		first.Release(unit)
		second.Release(7 * unit)
		used, _ := b.Stats()
		require.Zero(t, used)
		require.Empty(t, b.waiting)
	})
}

// Small responses that follow each other do not starve a large one, except on a connection of its
// own.
func TestSmallResponsesDoNotStarveALargeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(8*unit, 8*unit)
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
		require.True(t, isGranted(await(small, 5*unit)))
		large := await(b.Account(), 8*unit)
		var waiting []chan struct{}
		for range 3 {
			waiting = append(waiting, await(small, unit))
		}
		require.False(t, isGranted(large))
		require.False(t, isGranted(waiting[0]), "behind the large one")
		small.Release(5 * unit)
		require.True(t, isGranted(large))
		require.True(t, isGranted(waiting[0]))
		require.False(t, isGranted(waiting[1]))
		small.Release(unit)
		require.True(t, isGranted(waiting[1]))
		small.Release(unit)
		require.True(t, isGranted(waiting[2]))
	})
}

// Neither large bodies nor large responses that wait, of its own connection or of others, keep smaller
// ones waiting.
func TestLargeResponsesDoNotDelaySmallerOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(8<<20, 8<<20)
		unread, other := b.Account(), b.Account()
		require.True(t, unread.ReserveResponse(9<<20))
		unread.Charge(100 << 20) // of other nodes, for example
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go b.Account().AwaitResponse(ctx, 4<<20)
		synctest.Wait()
		for _, a := range []*Account{unread, other} {
			require.True(t, a.Reserve(100))
			require.True(t, a.ReserveResponse(100))
			require.True(t, a.AwaitResponse(ctx, Small))
			require.True(t, a.AwaitResponse(ctx, Medium/2))
			require.False(t, a.ReserveResponse(Medium+1))
			require.False(t, a.Reserve(Medium+1))
		}
		require.False(t, other.Reserve(Medium), "their reserve is an eighth")
		require.True(t, other.Reserve(Small), "a class does not use the reserve of a lower one")
	})
}

// Memory that a response could have is not given to later ones of its class meanwhile.
func TestAResponseIsNotOvertakenByLaterOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(8*unit, 8*unit)
		request := b.Account()
		require.True(t, request.Reserve(8*unit))
		ctx, cancel := context.WithCancel(t.Context())
		go b.Account().AwaitResponse(ctx, 4*unit)
		synctest.Wait()
		request.Return(8 * unit)
		require.True(t, request.Reserve(4*unit))
		go b.Account().AwaitResponse(ctx, 4*unit)
		synctest.Wait()
		require.False(t, b.Account().ReserveResponse(unit), "behind the second")
		cancel()
		synctest.Wait()
	})
}

// A response whose connection has used up its share does not delay those of others.
func TestAFullConnectionDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(80*unit, 4*unit)
		full := b.Account()
		require.True(t, full.Reserve(4*unit))
		ctx, cancel := context.WithCancel(t.Context())
		go full.AwaitResponse(ctx, 4*unit)
		go b.Account().AwaitResponse(ctx, 100*unit) // never fits
		synctest.Wait()
		require.True(t, b.Account().AwaitResponse(ctx, 4*unit))
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
	sizes := rapid.OneOf(rapid.Int64Range(1, Small), rapid.Int64Range(1, Medium), rapid.Int64Range(1, 5<<20))
	rapid.Check(t, func(t *rapid.T) {
		b := New(10<<20, 4<<20)
		accounts := []*Account{b.Account(), b.Account(), b.Account(), b.Account()}
		held := make([][]int64, len(accounts))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, len(accounts)-1).Draw(t, "account")
			if n := len(held[i]); n > 0 && rapid.Bool().Draw(t, "release") {
				accounts[i].Return(held[i][n-1])
				held[i] = held[i][:n-1]
			} else if n := sizes.Draw(t, "size"); accounts[i].Reserve(n) {
				held[i] = append(held[i], n)
			}
			total := int64(0)
			for i, list := range held {
				own := int64(0)
				for _, n := range list {
					own += n
				}
				require.Equal(t, own, accounts[i].usage.all)
				require.LessOrEqual(t, own, int64(4<<20+reserves*(4<<20)/reserve))
				total += own
			}
			used, _ := b.Stats()
			require.Equal(t, total, used)
			require.LessOrEqual(t, used, int64(10<<20+reserves*(10<<20)/reserve))
		}
	})
}
