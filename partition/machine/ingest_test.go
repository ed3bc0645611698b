package machine_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// reader is a leader, or one that does not know yet that it was deposed, which reads the
// records of a topic partition that belong to one partition.
type reader struct {
	next int   // index of the record that it sends next
	prev int64 // the sequence number that it assumes was sent before
}

// However readers overlap, repeat batches of unknown outcome and start again, the records
// that are stored are the beginning of the topic: each once, in order.
func TestRecordsAreStoredOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, state := machine.New(machine.Shards{Count: 1}), machinetest.NewStrict()
		header := machine.Header{Level: feature.Level4, Epoch: 1, Time: 1000}
		_, _, err := m.Apply(state, header, &machine.Lead{Epoch: 1}, nil)
		require.NoError(t, err)
		offsets := rapid.SliceOfNDistinct(rapid.Int64Range(0, 60), 1, 25, func(o int64) int64 { return o }).Draw(t, "offsets")
		slices.Sort(offsets)
		stream := machine.Stream{Subscription: "sub", Incarnation: 1, Topic: "orders"}
		readers := make([]reader, 3)
		for i := range readers {
			readers[i].prev = machine.NoOffset
		}
		stored := []int64{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			r := &readers[rapid.IntRange(0, len(readers)-1).Draw(t, "reader")]
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 { // at a position that was stored
				*r = reader{next: rapid.IntRange(0, len(stored)).Draw(t, "position"), prev: machine.NoOffset}
			}
			count := min(rapid.IntRange(0, 5).Draw(t, "records"), len(offsets)-r.next)
			c := &machine.Ingest{Stream: stream, Prev: r.prev}
			for _, o := range offsets[r.next : r.next+count] {
				c.Records = append(c.Records, recordOf(o))
			}
			if count > 0 && rapid.IntRange(0, 4).Draw(t, "lost") == 0 { // and it sends what follows
				r.next, r.prev = r.next+count, offsets[r.next+count-1]
				continue
			}
			outcome, effects, err := m.Apply(state, header, c, nil)
			require.NoError(t, err)
			if count == 0 { // it only announces a generation
				require.Equal(t, machine.Outcome{Code: machine.Existing, Last: machine.NoOffset}, outcome)
				continue
			}
			for _, e := range effects {
				if run, ok := e.(*machine.Run); ok {
					stored = append(stored, int64(binary.BigEndian.Uint64(run.Invocation.ID[16:])))
				}
			}
			require.Equal(t, offsets[:len(stored)], stored)
			last := int64(machine.NoOffset)
			if len(stored) > 0 {
				last = stored[len(stored)-1]
			}
			require.Equal(t, last, outcome.Last)
			if rapid.Bool().Draw(t, "answered") {
				r.next, r.prev = len(stored), outcome.Last
			}
		}
	})
}

func recordOf(offset int64) machine.IngestRecord {
	id := [16]byte{}
	binary.BigEndian.PutUint64(id[8:], uint64(offset))
	return machine.IngestRecord{Offset: offset, Invoke: machine.Invoke{
		ID: ids.NewInvocation(uint64(offset), id), Target: machine.Target{Service: "Greeter", Handler: "greet", Type: target.Service},
		Input: journal.NewInput(nil, nil), Source: machine.Source{Kind: machine.FromSubscription, Subscription: "sub"},
	}}
}
