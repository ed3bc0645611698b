package store

import (
	"bytes"
	"testing"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// FuzzSplit: the part of a key that filters are made from is a prefix, and has
// itself as that part; it does not depend on what follows a whole owner.
func FuzzSplit(f *testing.F) {
	s, id := space{3, generationA}, ids.Invocation{1, 2}
	o := machine.Object{Scope: "s\x00", Service: "Counter", Key: "k\xff\x01"}
	n := journal.NamedSignal("n")
	for _, key := range [][]byte{
		headerKey(3), s.entry(nil, &id, 7), s.notified(nil, &id, &n), s.value(nil, &o, []byte("a\x00")), s.promise(nil, &o, "p"),
		s.waiting(nil, &o, 9), s.timer(nil, &machine.Timer{At: -5, ID: id}), s.value(nil, &o, nil)[:12],
	} {
		f.Add(key, []byte{0, 1})
	}
	f.Fuzz(func(t *testing.T, key, more []byte) {
		n := split(key)
		if n < 0 || n > len(key) || split(key[:n]) != n {
			t.Fatalf("%x: %d, of that %d", key, n, split(key[:max(n, 0)]))
		}
		if owned := n < len(key); owned && split(append(bytes.Clone(key), more...)) != n {
			t.Fatalf("%x followed by %x: %d", key, more, split(append(bytes.Clone(key), more...)))
		}
		if len(key) > prefixLen {
			if timer, ok := timerOf(key[prefixLen:]); ok {
				if again := s.timer(nil, &timer); !bytes.Equal(again[prefixLen:], key[prefixLen:]) {
					t.Fatalf("timer %x is %x", key, again)
				}
			}
		}
	})
}
