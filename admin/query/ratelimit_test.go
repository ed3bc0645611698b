package query

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/internal/tokenbucket"
)

func TestRateLimitLeavesTokensToOtherClients(t *testing.T) {
	l := newRateLimit(tokenbucket.Rate{Count: 8, Period: time.Second, Capacity: 16})
	now := time.Unix(1000, 0)
	admitted := func(client access.Client) (n int) {
		for l.admit(client, now) == nil {
			n++
		}
		return n
	}
	require.Equal(t, 14, admitted("ada"), "two tokens are left to others")
	rejection, ok := errors.AsType[*RateError](l.admit("ada", now))
	require.True(t, ok)
	require.Equal(t, 125*time.Millisecond, rejection.After)
	require.ErrorContains(t, rejection, "of this client")
	require.Equal(t, 1, admitted("bob"))
	require.Equal(t, 1, admitted("cleo"))
	rejection, _ = errors.AsType[*RateError](l.admit("dan", now))
	require.Equal(t, 125*time.Millisecond, rejection.After)
	require.ErrorContains(t, rejection, "too many queries (admin")
	require.NoError(t, l.admit("", now), "a query of the server itself")

	now = now.Add(2 * time.Second)
	require.Equal(t, 14, admitted("eve"), "the bucket has filled")
	require.EqualValues(t, 6, l.rateLimited())

	// A single client is not slower than the rate.
	start, queries := now, 0
	for ; now.Before(start.Add(10 * time.Second)); now = now.Add(10 * time.Millisecond) {
		queries += admitted("ada")
	}
	require.InDelta(t, 80, queries, 2)
}

func TestRateLimitOfOneToken(t *testing.T) {
	l := newRateLimit(tokenbucket.Rate{Count: 1, Period: time.Minute, Capacity: 1})
	now := time.Unix(1000, 0)
	require.NoError(t, l.admit("ada", now))
	require.Error(t, l.admit("bob", now))
	require.NoError(t, l.admit("ada", now.Add(time.Minute)))
}

func TestRateLimitRemembersABoundedNumberOfClients(t *testing.T) {
	l := newRateLimit(tokenbucket.Rate{Count: 100_000, Period: time.Second, Capacity: 100_000})
	now := time.Unix(1000, 0)
	for i := range 2 * maxRecent {
		require.NoError(t, l.admit(access.Client(fmt.Sprint(i)), now))
	}
	require.Len(t, l.recent, maxRecent)
	require.NoError(t, l.admit("later", now.Add(time.Second)))
	require.Len(t, l.recent, 1)
}
