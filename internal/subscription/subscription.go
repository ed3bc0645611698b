package subscription

import (
	"cmp"
	"slices"
	"time"
)

// Subscription delivers the records of topics to a handler. A value is immutable.
type Subscription struct {
	ID string // see ids.NewSubscription
	Source
	Sink
	Options
	// Properties are the properties of the Kafka client that the subscription sets. They
	// override those of the cluster.
	Properties map[string]string

	// Incarnation starts at 1. Each seek raises it to the time of the seek. Records of one
	// incarnation are delivered once; those of another one may be delivered again.
	Incarnation uint64
	Start       Start
	// Offsets are where the incarnation starts, once that is resolved.
	Offsets  []TopicStart
	Resolved bool

	Paused     *Pause // nil unless paused
	Draining   bool   // it was deleted: what is in flight is finished, nothing more is fetched
	CreatedAt  time.Time
	ModifiedAt time.Time
	Version    uint64 // increases with every change of the record

	// Unreadable is why secrets in Properties cannot be decrypted on this node; nil: they can. It
	// is not stored.
	Unreadable error
}

// Source selects the topics to read: either Topics or those whose names match Pattern.
type Source struct {
	Cluster string
	Topics  []string // sorted, without duplicates
	Pattern string   // regular expression that matches whole names; empty with Topics
}

// Sink is the handler that receives the records.
type Sink struct{ Service, Handler string }

// Ordering determines which records are delivered one after the other.
type Ordering uint8

// The orderings. They are stored: numbers are only added.
const (
	// OrderByKey hands over records of one key in their order. Handlers that exclude each
	// other (objects) execute in that order.
	OrderByKey Ordering = iota
	// OrderByPartition executes one record of a topic partition at a time.
	OrderByPartition
	// Unordered hands over without order.
	Unordered
)

// OnError is the treatment of records that cannot be delivered.
type OnError uint8

// The treatments of such records. They are stored: numbers are only added.
const (
	// Block stops their topic partition until an operator retries or skips the record.
	Block OnError = iota
	// Skip leaves them out and counts them.
	Skip
	// DeadLetters writes them to the dead-letter topic, or keeps them if there is none, and
	// continues.
	DeadLetters
)

// Tombstones is the treatment of records without a value.
type Tombstones uint8

// The treatments of tombstones. They are stored: numbers are only added.
const (
	DeliverTombstones Tombstones = iota // with an empty body and the header kafka.tombstone
	SkipTombstones
)

// OnRecreate is the treatment of a topic that was deleted and created again.
type OnRecreate uint8

// The treatments of such topics. They are stored: numbers are only added.
const (
	// FailOnRecreate stops until an operator says where to start.
	FailOnRecreate OnRecreate = iota
	// RecreatedFromEarliest reads the new topic from its oldest record.
	RecreatedFromEarliest
)

// Options are the settings of a subscription that can be edited.
type Options struct {
	Ordering        Ordering
	OnError         OnError
	DeadLetterTopic string // of OnError DeadLetters; {topic} stands for the topic of the record; empty: the server keeps them
	Tombstones      Tombstones
	OnRecreate      OnRecreate
	// Headers are the names of the record headers that handlers receive, in lower case and
	// sorted; AllHeaders means that they receive all.
	AllHeaders bool
	Headers    []string
	Scope      Template // of the invocations; empty for none
	LimitKey   Template
	// MaxInFlight bounds the records of one topic partition that were handed over and are
	// not acknowledged by the partitions that receive them.
	MaxInFlight uint32
}

// Bounds of a subscription.
const (
	DefaultMaxInFlight = 1000
	maxMaxInFlight     = 10_000
	maxTopics          = 100
	maxHeaders         = 100
	maxProperties      = 200
	maxPropertyBytes   = 64 << 10 // of one property, which may be a certificate
	maxStartPartitions = 10_000   // topic partitions with a stored start
	maxPattern         = 1000
	// MaxSubscriptions and MaxClusters are the numbers that the metadata stores.
	MaxSubscriptions = 1000
	MaxClusters      = 100
	// MaxDeadLetters and MaxDeadLetterBytes bound the dead letters of a subscription in one
	// partition of the server, MaxDeadLetter the size of one.
	MaxDeadLetters     = 1000
	MaxDeadLetterBytes = 16 << 20
	MaxDeadLetter      = 256 << 10
)

// StartKind is a way to choose where an incarnation starts.
type StartKind uint8

// The kinds of starts. They are stored: numbers are only added.
const (
	StartLatest    StartKind = iota + 1 // with records produced after the start was resolved
	StartEarliest                       // with the oldest records
	StartTimestamp                      // with the first records that are not older than Timestamp
	StartOffsets                        // at Offsets; other topic partitions at Otherwise
	StartGroup                          // at the committed offsets of the group; without one at Otherwise
)

// Start is where an incarnation is to start, as requested. Topics and topic partitions that
// appear later are read from their first record.
type Start struct {
	Kind      StartKind
	Timestamp time.Time      // of StartTimestamp
	Offsets   []TopicOffsets // of StartOffsets
	// Otherwise is StartLatest or StartEarliest: what applies to topic partitions that
	// StartOffsets and StartGroup do not cover.
	Otherwise StartKind
}

// TopicOffsets are offsets of one topic.
type TopicOffsets struct {
	Topic   string
	Offsets []PartitionOffset // sorted by partition
}

// PartitionOffset is the offset of the next record of a topic partition.
type PartitionOffset struct {
	Partition int32
	Offset    int64
}

// TopicStart is where reading a topic starts.
type TopicStart struct {
	TopicOffsets
	ID [16]byte // Kafka's ID of the topic, zero if the broker does not report it
}

// Pause records who paused a subscription.
type Pause struct {
	By     string // network address of the client that requested it
	Reason string
	At     time.Time
}

// StartOf returns where to start reading a topic partition. known is false if it did not exist
// when the start was resolved, so that it is read from its first record.
func (s *Subscription) StartOf(topic string, partition int32) (offset int64, known bool) {
	for i := range s.Offsets {
		if s.Offsets[i].Topic != topic {
			continue
		}
		offsets := s.Offsets[i].Offsets
		at, known := slices.BinarySearchFunc(offsets, partition, func(o PartitionOffset, p int32) int { return cmp.Compare(o.Partition, p) })
		if known {
			return offsets[at].Offset, true
		}
	}
	return 0, false
}
