package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"platform/partition/machine"
)

const (
	topics    = 2
	topicKeys = 3
	// produceDelay is the longest time between two records.
	produceDelay = 300 * time.Millisecond
)

// topic is a topic partition with the records of an event stream. It replaces the brokers, which
// need real sockets.
type topic struct {
	number int
	stream machine.Stream

	mu      sync.Mutex // covers the fields below
	records []record
	read    int64 // stored position
}

// record is a record of a topic. Offsets have gaps, as after compaction.
type record struct {
	offset int64
	key    string
}

func (s *Sim) newTopics() {
	for i := range topics {
		s.topics = append(s.topics, &topic{number: i, stream: machine.Stream{
			Subscription: "sub_1", Incarnation: 1, Topic: "orders", TopicID: [16]byte{1}, Partition: uint32(i), //nolint:gosec // few
		}})
	}
}

// produce appends records until end.
func (t *topic) produce(rng *rand.Rand, end time.Time) {
	for offset := int64(0); time.Now().Before(end); offset += 1 + rng.Int64N(3) {
		t.mu.Lock()
		t.records = append(t.records, record{offset, fmt.Sprintf("key%d", rng.IntN(topicKeys))})
		t.mu.Unlock()
		time.Sleep(time.Duration(rng.Int64N(int64(produceDelay))))
	}
}

// fetch returns up to limit records from an offset on.
func (t *topic) fetch(from int64, limit int) []record {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, _ := slices.BinarySearchFunc(t.records, from, func(r record, from int64) int { return int(r.offset - from) })
	return slices.Clone(t.records[at:min(at+limit, len(t.records))])
}

// end is the offset behind the last record.
func (t *topic) end() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.records) == 0 {
		return 0
	}
	return t.records[len(t.records)-1].offset + 1
}

// stored records a position that was stored.
func (t *topic) stored(next int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = max(t.read, next)
}

func (t *topic) position() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read
}

// unread describes a topic that has not been read to its end, "" if there is none.
func (s *Sim) unread() string {
	for _, t := range s.topics {
		if read, end := t.position(), t.end(); read < end {
			return fmt.Sprintf("topic %d read up to %d of %d", t.number, read, end)
		}
	}
	return ""
}

// recordOffset appends its input, the offset of a record, to the list of its key.
func (s *Sim) recordOffset(c *call) ([]byte, error) {
	list := append(c.get("offsets"), c.input...)
	c.set("offsets", append(list, ' '))
	return nil, nil
}

// checkRecords compares the records that handlers have received with those of the topics: each
// once, and those of a key in their order.
func (s *Sim) checkRecords(received map[string][]string) {
	for _, t := range s.topics {
		want := map[string][]string{}
		for _, r := range t.records {
			want[r.objectKey(t)] = append(want[r.objectKey(t)], fmt.Sprint(r.offset))
		}
		for i := range topicKeys {
			key := record{key: fmt.Sprintf("key%d", i)}.objectKey(t)
			s.checkKey(key, want[key], received[key])
		}
	}
}

func (s *Sim) checkKey(key string, want, got []string) {
	if slices.Equal(want, got) {
		return
	}
	count := map[string]int{}
	for _, offset := range got {
		if count[offset]++; count[offset] == 2 {
			s.violate("duplicate: record %s of %s", offset, key)
		}
	}
	for _, offset := range want {
		if count[offset] == 0 {
			s.violate("lost: record %s of %s", offset, key)
		}
	}
	s.violate("out of order: %s received %s, its topic has %s", key, strings.Join(got, " "), strings.Join(want, " "))
}

// objectKey is the key of the object that receives a record.
func (r record) objectKey(t *topic) string { return fmt.Sprintf("topic%d-%s", t.number, r.key) }
