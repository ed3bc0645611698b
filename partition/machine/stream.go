package machine

// Stream identifies the records that one incarnation of a subscription reads from one
// topic partition. Offsets are unique in it: a topic that is deleted and created again has
// another TopicID, and a subscription that starts over has another incarnation.
type Stream struct {
	Subscription string
	Incarnation  uint64
	Topic        string
	TopicID      [16]byte
	Partition    uint32
}

// NoOffset is the offset before the first record of a stream.
const NoOffset = -1

// Ingest creates invocations from consecutive records of a stream that belong to this
// partition, each once. Prev is the offset of the record of the stream that was sent to this
// partition before, NoOffset if none was: a sender that repeats records of unknown outcome, or
// that does not know of another sender, can neither create an invocation twice nor skip one.
// The outcome has the offset of the last record that is stored.
//
// Generation is that of the routing, which says what records belong to this partition; offsets
// start over with each. Once the partition has seen a generation, it refuses earlier ones as
// Superseded: a command that was sent before the routing changed can neither create an invocation
// of a record that belongs elsewhere by now, nor move the last offset past records that belong
// here by now. Without records, a command only announces a generation, and the outcome has the
// last offset of the one before. The incarnations of a subscription before that of ForgetStreams
// are refused as Forgotten.
type Ingest struct {
	Stream     Stream
	Generation uint64
	Prev       int64
	Records    []IngestRecord // in ascending order of offsets
}

// Ingested is what a partition stores about a stream whose records it has received.
type Ingested struct {
	Generation uint64
	Last       int64 // offset of the last record of the generation, NoOffset if there is none
	Before     int64 // likewise of the generation before
}

// IngestRecord is a record of a stream and the invocation that it becomes.
type IngestRecord struct {
	Offset int64
	Invoke Invoke
}

// StreamPosition records how far a stream has been read. The partition that owns the topic
// partition stores it; invocations are stored by others.
type StreamPosition struct {
	Stream Stream
	// Next is the offset of the first record that is neither stored as an invocation nor
	// skipped.
	Next int64
	// LeaderEpoch is the epoch of the broker that led the topic partition when the record
	// before Next was written, which reveals a truncated log; -1 if unknown.
	LeaderEpoch int64
	// Routing defines how records are assigned to invocations; the machine does not interpret
	// it. Records that may have been sent are sent again with the same one.
	Routing      string
	Skipped      uint64         // records that cannot become invocations and were skipped
	DeadLettered uint64         // such records that were written to a dead-letter topic
	Blocked      *BlockedRecord // nil: none
	At           int64          // partition time of the last change
}

// BlockedRecord is the record at StreamPosition.Next, if it cannot become an invocation and
// waits for an operator.
type BlockedRecord struct {
	Offset  int64
	Reason  string // a code
	Message string
	Since   int64 // milliseconds since 1970
}

// PutPosition stores how far a stream has been read. It replaces the position of an earlier
// incarnation or of an earlier topic of the same name, and is refused if it would move back
// otherwise.
type PutPosition struct{ Position StreamPosition }

// ForgetStreams deletes what is stored about records of incarnations of a subscription before
// the given one, and refuses such records from then on: their sender may have been frozen
// meanwhile. With Positions it deletes those and the dead letters as well, since the subscription
// has been deleted.
type ForgetStreams struct {
	Subscription string
	Before       uint64
	Positions    bool
}

func (*Ingest) command()        {}
func (*PutPosition) command()   {}
func (*ForgetStreams) command() {}
