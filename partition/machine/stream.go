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
// The outcome has the offset of the last record that is stored; without records it has
// nothing else.
type Ingest struct {
	Stream  Stream
	Prev    int64
	Records []IngestRecord // in ascending order of offsets
}

// IngestRecord is a record of a stream and the invocation that it becomes.
type IngestRecord struct {
	Offset int64
	Invoke Invoke
}

// StreamPosition says how far a stream has been read. The partition that owns the topic
// partition stores it; invocations are stored by others.
type StreamPosition struct {
	Stream Stream
	// Next is the offset of the first record that is neither stored as an invocation nor
	// skipped.
	Next int64
	// LeaderEpoch is the epoch of the broker that led the topic partition when the record
	// before Next was written, which reveals a truncated log; -1 if unknown.
	LeaderEpoch int64
	// Routing says how records are assigned to invocations; the machine does not interpret
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

// ForgetStreams deletes what is stored about incarnations of a subscription before the given
// one; with Before zero, everything, since the subscription has been deleted.
type ForgetStreams struct {
	Subscription string
	Before       uint64
}

func (*Ingest) command()        {}
func (*PutPosition) command()   {}
func (*ForgetStreams) command() {}
