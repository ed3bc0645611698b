package subscription

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// State is the state of a subscription or of one of its topic partitions.
type State string

// The states.
const (
	Starting  State = "starting"  // the start is not resolved, or nothing was fetched yet
	Running   State = "running"   // records are delivered as they come
	Paused    State = "paused"    // by an operator
	Blocked   State = "blocked"   // a record cannot be delivered; an operator has to retry or skip it
	Throttled State = "throttled" // the target does not accept more records now
	Draining  State = "draining"  // deleted; records in flight are finished
	Failed    State = "error"     // the broker cannot be used; retried
	Orphaned  State = "orphaned"  // its cluster does not exist
)

// severity orders states: a subscription has the state of its most severe topic partition.
var severity = map[State]int{
	Running: 1, Throttled: 2, Starting: 3, Draining: 4, Paused: 5, Failed: 6, Blocked: 7, Orphaned: 8,
}

// MoreSevere reports whether a requires more attention than b.
func (s State) MoreSevere(b State) bool { return severity[s] > severity[b] }

// Reason is a coded reason why a record or a topic partition cannot be delivered.
type Reason string

// The reasons. The first group is about records, the second about topics.
const (
	KeyMissing      Reason = "key_missing"       // objects and workflows need a key
	KeyNotUTF8      Reason = "key_not_utf8"      // keys of objects and workflows are text
	KeyTooLarge     Reason = "key_too_large"     // longer than the keys of invocations may be
	RecordTooLarge  Reason = "record_too_large"  // larger than networking.message-size-limit, or with too many headers
	HandlerNotFound Reason = "handler_not_found" // the service or handler is not registered
	InvalidScope    Reason = "invalid_scope"     // the scope made by the template is not valid
	InvalidLimitKey Reason = "invalid_limit_key" // likewise the limit key
	DecodeFailed    Reason = "decode_failed"     // compressed or encoded data is damaged

	TopicRecreated    Reason = "topic_recreated"     // a topic of that name has another ID
	TopicMissing      Reason = "topic_missing"       // the broker does not know the topic
	OffsetOutOfRange  Reason = "offset_out_of_range" // the next record has expired or never existed
	LogTruncated      Reason = "log_truncated"       // the broker has lost records
	BrokerUnreachable Reason = "broker_unreachable"
	BrokerUnavailable Reason = "broker_unavailable" // it responds, but cannot serve the request now
	NotAuthorized     Reason = "not_authorized"     // wrong credentials, or no permission
	InvalidProperties Reason = "invalid_properties"
)

// BrokerError is why brokers did not say where a subscription starts.
type BrokerError struct {
	Reason  Reason // may be empty
	Message string
}

func (e *BrokerError) Error() string { return e.Message }

// Errors of operations on single records.
var (
	// ErrNotRead means that this node does not read the topic partition.
	ErrNotRead = errors.New("this node does not read the topic partition")
	// ErrNotBlocked means that the record does not block its topic partition.
	ErrNotBlocked = errors.New("the record does not block its topic partition")
	// ErrNoRecord means that the topic partition has no record at the offset.
	ErrNoRecord = errors.New("there is no such record")
)

// Status is what one node reports about a subscription.
type Status struct {
	Subscription string
	Incarnation  uint64
	// State and the next fields are about the subscription as a whole on this node; the state
	// of topic partitions is not repeated here.
	State       State
	Reason      Reason // may be empty
	Message     string // for operators
	Since       time.Time
	DeadLetters uint64 // that this node stores as a leader
	// Partitions are the topic partitions that this node reads or would read.
	Partitions []PartitionStatus
}

// PartitionStatus is what the node that reads a topic partition reports.
type PartitionStatus struct {
	Topic     string
	Partition int32
	TopicID   [16]byte
	Owner     uint32 // partition of the server whose leader reads the topic partition
	Node      uint32 // of that leader
	State     State
	Reason    Reason // of State; may be empty
	Message   string
	Since     time.Time
	// Position is the offset of the next record: all records below are delivered or left out.
	Position int64
	// End is the offset of the next record to be produced; -1 if it is not known.
	End int64
	// LagSeconds is the age of the oldest record that is not delivered; 0 if there is none, or if it is
	// not known since records are not fetched.
	LagSeconds   float64
	InFlight     uint32
	LastRecordAt time.Time // timestamp of the last record that was delivered; zero: none yet
	LastError    string
	LastErrorAt  time.Time
	Blocked      *BlockedRecord // of State Blocked
	// Since the node started to read.
	Delivered, Skipped, DeadLettered uint64
}

// Lag returns the number of records that are not delivered; -1 if it is not known.
func (p *PartitionStatus) Lag() int64 {
	if p.End < 0 {
		return -1
	}
	return max(0, p.End-p.Position)
}

// KnowsAge reports whether seconds is the age of the oldest of the records that are not delivered. If there are records, 0
// means that their age is not known.
func KnowsAge(records int64, seconds float64) bool { return records == 0 || seconds > 0 }

// BlockedRecord is a record that cannot be delivered.
type BlockedRecord struct {
	Offset    int64
	Timestamp time.Time
	Reason    Reason
	Message   string
	KeySize   int
	ValueSize int
}

// Errors of operations on dead letters; ErrNotRead is another one.
var (
	// ErrNoDeadLetter says that a record is not among the dead letters.
	ErrNoDeadLetter = errors.New("the record is not a dead letter")
	// ErrUndeliverable says that the record cannot be delivered yet.
	ErrUndeliverable = errors.New("the record still cannot be delivered")
)

// DeadLetter is a record that could not be delivered and that the server keeps.
type DeadLetter struct {
	Record
	Reason  Reason
	Message string
	At      time.Time // when it was set aside
}

// DeadLetterPage is a part of the dead letters of a subscription that a node stores as a leader.
type DeadLetterPage struct {
	Letters    []DeadLetter
	Partitions []uint32 // partitions of the server that were read
}

// SortDeadLetters sorts by topic, partition and offset.
func SortDeadLetters(all []DeadLetter) {
	slices.SortFunc(all, func(a, b DeadLetter) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
}

// RecordID names a record that a subscription reads.
type RecordID struct {
	Subscription string
	Topic        string
	Partition    int32
	Offset       int64
}

// Record is a record of a topic, for operators. Key, value and headers are cut at MaxRecordView.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Timestamp time.Time
	Key       []byte // nil if there is none
	Value     []byte // nil for a tombstone
	Headers   []RecordHeader
	KeySize   int // before they were cut
	ValueSize int
}

// RecordHeader is a header of a record.
type RecordHeader struct {
	Name  string
	Value []byte
}

// MaxRecordView is how many bytes of a key, value or header operators see.
const MaxRecordView = 64 << 10
