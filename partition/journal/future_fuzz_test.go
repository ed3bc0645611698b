package journal

import "testing"

// FuzzFuture checks that a decoded await is within the bounds, and that a pruned await is
// over exactly when the whole one is.
func FuzzFuture(f *testing.F) {
	for _, seed := range []string{
		"\x0a\x01\x02\x12\x01\x01", "\x22\x08\x0a\x01\x02\x12\x01\x01\x28\x01", "\x22\x0c\x12\x01\x01\x22\x05\x0a\x01\x02\x28\x01\x28\x01",
		"\x1a\x01n\x08\x05", "\x22\x02\x28\x09", "\x22\x00\x22\x00", "\x22\x10\x22\x06\x0a\x02\x01\x02\x28\x02\x22\x04\x10\x11\x28\x03\x28\x04",
	} {
		for _, have := range []uint64{0, 0x05, 0xe4e4} {
			f.Add([]byte(seed), uint8(6), have, have<<4)
			f.Add([]byte(seed), uint8(7), have, have<<4)
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte, version uint8, first, then uint64) {
		await, err := ParseSuspension(payload, 5+version%3)
		if err != nil {
			return
		}
		if await.Empty() || await.Depth() > MaxDepth || nodes(await) > MaxNodes {
			t.Fatalf("%d levels, %d nodes", await.Depth(), nodes(await))
		}
		before, after := outcomesOf(first, 0), outcomesOf(first, then)
		if await.Certain(before) && !await.Over(before) {
			t.Fatal("certain, but not over")
		}
		if await.Over(before) {
			return
		}
		rest := await.Prune(before)
		if rest.Over(before) {
			t.Fatalf("%+v is not over, %+v is", await, rest)
		}
		for id := range rest.Leaves() {
			if before(id) != Pending {
				t.Fatalf("%v is still awaited", id)
			}
		}
		// Without leaves it can never become over.
		if whole, left := await.Over(after), rest.Over(after); whole && !left {
			t.Fatalf("%+v is over, its pruned form %+v is not", await, rest)
		}
		once := func(id NotificationID) Settled {
			if id.Repeats() {
				return Pending
			}
			return before(id)
		}
		checkReduced(t, await, once, after)
	})
}

// checkReduced checks the reduced form of an await that is not over by the notifications that occur
// once: after further ones it is over if the await certainly is, and never if that is not.
func checkReduced(t *testing.T, await *Future, once, after func(NotificationID) Settled) {
	t.Helper()
	reduced := await.Reduce(once)
	for id := range reduced.Leaves() {
		if once(id) != Pending {
			t.Fatalf("%v is still awaited", id)
		}
	}
	switch over := reduced.Over(after); {
	case over && !await.Over(after):
		t.Fatalf("%+v is not over, its reduced form %+v is", await, reduced)
	case !over && await.Certain(after):
		t.Fatalf("%+v is over, its reduced form %+v is not", await, reduced)
	}
}

// outcomesOf returns the state of notifications: two bits of first for each or, if those
// are zero, of then.
func outcomesOf(first, then uint64) func(NotificationID) Settled {
	return func(id NotificationID) Settled {
		at := (id.Index*7 + uint32(len(id.Name))) % 32 * 2
		if id.Signal {
			at = (at + 16) % 64
		}
		for _, bits := range []uint64{first, then} {
			if s := bits >> at & 3; s != 0 {
				return [...]Settled{Pending, Succeeded, Failed, Either}[s]
			}
		}
		return Pending
	}
}

func nodes(f *Future) int {
	n := 1
	for i := range f.Nested {
		n += nodes(&f.Nested[i])
	}
	return n
}
