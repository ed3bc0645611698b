package ids

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// named is what an id is derived from.
type named struct{ scope, service, key, handler, idempotencyKey string }

func (n named) ids() (now, legacy Invocation) {
	if n.handler == "" {
		return OfWorkflow(n.scope, n.service, n.key), LegacyOfWorkflow(n.scope, n.service, n.key)
	}
	return OfIdempotent(n.scope, n.service, n.key, n.handler, n.idempotencyKey),
		LegacyOfIdempotent(n.scope, n.service, n.key, n.handler, n.idempotencyKey)
}

// drawNamed draws parts of few characters, so that different ones often join to the same
// text.
func drawNamed(t *rapid.T) named {
	name := rapid.SampledFrom([]string{"a", "b"})
	text := rapid.StringOfN(rapid.SampledFrom([]rune{'a', 'b', ',', ',', 0, 1, '1', ':'}), 0, 7, -1)
	n := named{scope: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "scope"), service: name.Draw(t, "service"), key: text.Draw(t, "key")}
	if rapid.Bool().Draw(t, "idempotent") {
		n.handler, n.idempotencyKey = name.Draw(t, "handler"), text.Draw(t, "idempotency key")
	}
	return n
}

func TestDifferentKeysHaveDifferentIDs(t *testing.T) {
	seen := map[Invocation]named{}
	collisions := map[Invocation]named{} // of legacy ids
	collided := false
	rapid.Check(t, func(t *rapid.T) {
		for range 100 {
			n := drawNamed(t)
			now, legacy := n.ids()
			if other, known := seen[now]; known {
				require.Equal(t, other, n)
			}
			seen[now] = n
			require.Equal(t, now.PartitionKey(), legacy.PartitionKey(), "both are in the same partition")
			if now != legacy {
				require.True(t, Ambiguous(n.scope, n.service, n.key, n.idempotencyKey))
			}
			if other, known := collisions[legacy]; known && other != n {
				collided = true
			}
			collisions[legacy] = n
		}
	})
	require.True(t, collided, "the test would find the ids of the first release equal")
}

func TestUnambiguousKeysKeepTheirIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clean := rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return r != ',' && r > 1 }))
		n := named{
			scope: rapid.SampledFrom([]string{"", "tenant"}).Draw(t, "scope"), service: "Greeter", key: clean.Draw(t, "key"),
			handler: "greet", idempotencyKey: clean.Draw(t, "idempotency key"),
		}
		require.False(t, Ambiguous(n.scope, n.service, n.key, n.idempotencyKey))
		now, legacy := n.ids()
		require.Equal(t, legacy, now)
		n.handler = ""
		now, legacy = n.ids()
		require.Equal(t, legacy, now)
	})
}

func TestKeysWithCommasDoNotCollide(t *testing.T) {
	for _, scope := range []string{"", "tenant"} {
		require.NotEqual(t, IdempotentUnique(scope, "Counter", "k1,add,x", "add", "y"), IdempotentUnique(scope, "Counter", "k1", "add", "x,add,y"))
	}
	require.Equal(t, LegacyOfIdempotent("tenant", "Counter", "k1,add,x", "add", "y"), LegacyOfIdempotent("tenant", "Counter", "k1", "add", "x,add,y"))
	require.NotEqual(t, OfIdempotent("A", "A", "", "h", "i"), OfIdempotent("", "A", "A", "h", "i"))
	require.NotEqual(t, WorkflowUnique("A", "B", "c"), WorkflowUnique("", "A", "B,c"))
}

// The names of scopes, limit keys, services and handlers have no commas, and the key comes
// last, so the ids of queues need no marker.
func TestQueuesOfDifferentKeysDiffer(t *testing.T) {
	seen := map[VQueue][4]string{}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[ab]{0,2}`)
		text := [4]string{name.Draw(t, "scope"), name.Draw(t, "limit key"), name.Draw(t, "service"), rapid.StringMatching(`[ab,]{0,5}`).Draw(t, "key")}
		id := OfVQueue(text[0], text[1], text[2], text[3])
		if other, known := seen[id]; known {
			require.Equal(t, other, text, strings.Join(text[:], "|"))
		}
		seen[id] = text
	})
}

// Principals do not share ids, whatever their names and keys are, and each id belongs to the
// partition of the key.
func TestPrivateIDsDiffer(t *testing.T) {
	type private struct {
		principal string
		named
	}
	seen := map[Invocation]private{}
	rapid.Check(t, func(t *rapid.T) {
		for range 100 {
			n := private{rapid.SampledFrom([]string{"a", "b", "a,b", "aa", "\x00"}).Draw(t, "principal"), drawNamed(t)}
			id := OfPrivate(n.principal, n.scope, n.service, n.key, n.handler, n.idempotencyKey)
			if other, known := seen[id]; known {
				require.Equal(t, other, n)
			}
			seen[id] = n
			shared := OfIdempotent(n.scope, n.service, n.key, n.handler, n.idempotencyKey)
			require.NotEqual(t, shared, id)
			require.Equal(t, shared.PartitionKey(), id.PartitionKey())
		}
	})
}

// Clients find the results of earlier requests by these ids.
func TestPrivateIDsDoNotChange(t *testing.T) {
	require.Equal(t, "inv_12k70EvbJ7xr4ObIrllNCS7VsGnLoLJDem", OfPrivate("shop", "tenant", "Counter", "k", "add", "order-17").String())
}
