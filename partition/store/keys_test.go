package store

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/flowcontrol"
	"platform/partition/journal"
	"platform/partition/machine"
)

// anyPart draws strings that are close to each other and full of what is escaped.
var anyPart = rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 'a', 0xfe, 0xff}), 0, 5), func(b []byte) string { return string(b) })

func anyObject(t *rapid.T) machine.Object {
	return machine.Object{Scope: anyPart.Draw(t, "scope"), Service: anyPart.Draw(t, "service"), Key: anyPart.Draw(t, "key")}
}

func compareObjects(a, b machine.Object) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Key, b.Key))
}

func TestObjectKeysSortLikeObjectsAndAreNotPrefixes(t *testing.T) {
	s := space{1, generationA}
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyObject(t), anyObject(t)
		ka, kb := s.object(nil, tableValues, &a), s.object(nil, tableValues, &b)
		require.Equal(t, compareObjects(a, b), bytes.Compare(ka, kb))
		require.Equal(t, a == b, bytes.HasPrefix(ka, kb))
	})
}

// anyKey draws keys of all tables, and cut ones, which occur as bounds.
func anyKey(t *rapid.T) []byte {
	s := space{uint16(rapid.IntRange(0, 2).Draw(t, "partition")), rapid.ByteRange(1, 2).Draw(t, "generation")}
	id, o := testID(rapid.ByteRange(0, 2).Draw(t, "id")), anyObject(t)
	note := rapid.SampledFrom([]journal.NotificationID{journal.Completion(1), journal.NumberedSignal(1), journal.NamedSignal("a")}).Draw(t, "note")
	timer := machine.Timer{At: rapid.Int64Range(-2, 2).Draw(t, "at"), ID: id}
	number := rapid.Uint32Range(0, 2).Draw(t, "number")
	key := rapid.SampledFrom([][]byte{
		headerKey(s.partition),
		s.table(nil, tableMeta),
		s.invocation(nil, tableLive, &id),
		s.invocation(nil, tableDone, &id),
		s.entry(nil, &id, number),
		s.notified(nil, &id, &note),
		s.value(nil, &o, []byte(anyPart.Draw(t, "name"))),
		s.promise(nil, &o, anyPart.Draw(t, "promise")),
		s.object(nil, tableLocks, &o),
		s.waiting(nil, &o, uint64(number)),
		s.timer(nil, &timer),
		s.outgoing(nil, number, uint64(number)),
		s.peer(nil, tableSent, number),
		append(s.chunksOf(s.value(nil, &o, []byte("n")), uint64(number)), 0, 0, 0, 1),
		s.limit(nil, tableCounters, &flowcontrol.CounterKey{Scope: o.Scope, LimitKey: flowcontrol.LimitKey{L1: o.Key}}),
		s.vqueue(nil, tableVQueues, &flowcontrol.QueueKey{Scope: o.Scope, Service: o.Service}),
		s.queued(nil, &flowcontrol.QueueKey{Scope: o.Scope, Service: o.Service}, 1, uint64(number)),
		s.ring(nil, &flowcontrol.CounterKey{Scope: o.Scope}, uint64(number)),
	}).Draw(t, "key")
	if rapid.IntRange(0, 4).Draw(t, "cut") == 0 {
		key = key[:rapid.IntRange(1, len(key)).Draw(t, "length")]
	}
	return key
}

func TestSplitMeetsPebbleRequirements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyKey(t), anyKey(t)
		owner := func(key []byte) []byte { return key[:comparer.Split(key)] }
		if bytes.Compare(a, b) <= 0 {
			require.LessOrEqual(t, bytes.Compare(owner(a), owner(b)), 0)
		}
		if bytes.Compare(owner(a), owner(b)) < 0 {
			require.Less(t, bytes.Compare(a, b), 0)
		}
		require.Equal(t, owner(a), owner(owner(a)), "an owner's owner is itself")
	})
}

func TestOwners(t *testing.T) {
	s, id, o := space{1, generationA}, testID(1), machine.Object{Scope: "s\x00", Service: "S", Key: "k"}
	owner := s.object(nil, tableValues, &o)
	for _, name := range []string{"", "a", "\x00\x01"} {
		require.Equal(t, len(owner), split(s.value(nil, &o, []byte(name))))
		require.Equal(t, len(owner), split(s.promise(nil, &o, name)))
	}
	require.Equal(t, prefixLen+idLen, split(s.entry(nil, &id, 7)))
	require.Equal(t, prefixLen+idLen, split(s.notified(nil, &id, &journal.NotificationID{Name: "x"})))
	whole := s.timer(nil, &machine.Timer{})
	require.Equal(t, len(whole), split(whole))
}

func TestObjectKeysRoundTrip(t *testing.T) {
	s := space{1, generationA}
	rapid.Check(t, func(t *rapid.T) {
		o, name := anyObject(t), anyPart.Draw(t, "name")
		key := s.promise(nil, &o, name)[prefixLen:]
		got, rest, ok := objectOf(key)
		require.True(t, ok)
		require.Equal(t, o, got)
		require.Equal(t, name, string(rest))

		_, _, ok = objectOf(key[:rapid.IntRange(0, len(key)-len(name)-1).Draw(t, "cut")])
		require.False(t, ok, "an object that is cut off")
	})
	_, _, ok := objectOf([]byte{'a', 0, 7, 0, 1, 0, 1, 0, 1})
	require.False(t, ok, "a zero byte that no encoder writes")
}

func TestTimerKeysSortByTimeAndRoundTrip(t *testing.T) {
	s := space{1, generationA}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) machine.Timer {
			return machine.Timer{
				At: rapid.Int64().Draw(t, label), Kind: machine.TimerKind(rapid.Byte().Draw(t, "kind")),
				ID: testID(rapid.Byte().Draw(t, "id")), Completion: rapid.Uint32().Draw(t, "completion"), Name: anyPart.Draw(t, "name"),
			}
		}
		a, b := draw("a"), draw("b")
		if a.At != b.At {
			require.Equal(t, cmp.Compare(a.At, b.At), bytes.Compare(s.timer(nil, &a), s.timer(nil, &b)))
		}
		got, ok := timerOf(s.timer(nil, &a)[prefixLen:])
		require.True(t, ok)
		require.Equal(t, a, got)
	})
}

func TestAfterIsTheFirstKeyPastAPrefix(t *testing.T) {
	for prefix, want := range map[string]string{"00": "01", "01ff": "02", "0001ffff": "0002", "017e": "017f"} {
		b, err := hex.DecodeString(prefix)
		require.NoError(t, err)
		require.Equal(t, want, hex.EncodeToString(after(b)))
	}
	_, upper := space{math.MaxUint16, generationB}.bounds()
	require.Equal(t, "ffff03", hex.EncodeToString(upper))
}

// TestKeysOnDisk pins what is written: these never change.
func TestKeysOnDisk(t *testing.T) {
	s, id, o := space{0x0102, generationB}, testID(0xee), machine.Object{Scope: "s", Service: "S", Key: "\x00k"}
	const idHex = "ee00000000000000" + "ee000000000000000000000000000000"
	stream := machine.Stream{Subscription: "s", Incarnation: 7, Topic: "t", TopicID: [16]byte(bytes.Repeat([]byte{0xab}, 16)), Partition: 3}
	counter := flowcontrol.CounterKey{Scope: "s", LimitKey: flowcontrol.LimitKey{L1: "a"}}
	queue := flowcontrol.QueueKey{Scope: "s", LimitKey: flowcontrol.LimitKey{L1: "a"}, Service: "S"}
	noID := strings.Repeat("00", 24)
	const objectHex = "730001" + "530001" + "00ff6b0001"
	for want, key := range map[string][]byte{
		"010200":                                                         headerKey(0x0102),
		"010202" + "6d":                                                  s.table(nil, tableMeta),
		"010202" + "69" + idHex:                                          s.invocation(nil, tableLive, &id),
		"010202" + "64" + idHex:                                          s.invocation(nil, tableDone, &id),
		"010202" + "6a" + idHex + "00000007":                             s.entry(nil, &id, 7),
		"010202" + "6e" + idHex + "00" + "00000007":                      s.notified(nil, &id, &journal.NotificationID{Index: 7}),
		"010202" + "6e" + idHex + "01" + "00000007":                      s.notified(nil, &id, &journal.NotificationID{Index: 7, Signal: true}),
		"010202" + "6e" + idHex + "02" + "6e616d65":                      s.notified(nil, &id, &journal.NotificationID{Name: "name", Signal: true}),
		"010202" + "76" + objectHex + "78":                               s.value(nil, &o, []byte("x")),
		"010202" + "70" + objectHex + "78":                               s.promise(nil, &o, "x"),
		"010202" + "6c" + objectHex:                                      s.object(nil, tableLocks, &o),
		"010202" + "77" + objectHex + "0000000000000007":                 s.waiting(nil, &o, 7),
		"010202" + "74" + "8000000000000005" + "02" + idHex + "00000007": s.timer(nil, &machine.Timer{At: 5, Kind: 2, ID: id, Completion: 7}),
		"010202" + "6f" + "00000003" + "0000000000000007":                s.outgoing(nil, 3, 7),
		"010202" + "73" + "00000003":                                     s.peer(nil, tableSent, 3),
		"010202" + "72" + "00000003":                                     s.peer(nil, tableDelivered, 3),
		"010202" + "63" + "730001" + "610001" + "0001":                   s.limit(nil, tableCounters, &counter),
		"010202" + "71" + "730001" + "610001" + "0001" + "530001":        s.vqueue(nil, tableVQueues, &queue),
		"010202" + "65" + "730001" + "610001" + "0001" + "530001" + "03" + "0000000000000007": s.queued(nil, &queue, 3, 7),
		"010202" + "68" + "730001" + "610001" + "0001" + "0000000000000007":                   s.ring(nil, &counter, 7),
		"010202" + "62": s.table(nil, tableRules),
		"010202" + "67" + "730001" + "0000000000000007" + "740001" + strings.Repeat("ab", 16) + "00000003": s.ingested(nil, &stream),
		"010202" + "6b" + "730001" + "740001" + "00000003":                                                 s.position(nil, &stream),
		"010202" + "74" + "8000000000000005" + "04" + noID + "00000000" + "73":                             s.timer(nil, &machine.Timer{At: 5, Kind: 4, Name: "s"}),
	} {
		require.Equal(t, want, hex.EncodeToString(key))
	}
}
