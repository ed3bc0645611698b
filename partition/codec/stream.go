package codec

import (
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/feature"
	"platform/partition/machine"
)

func (w *writer) stream(field protowire.Number, s *machine.Stream) {
	n := w.open(field, streamSize(s))
	w.string(fieldStreamSubscription, s.Subscription)
	w.uint(fieldStreamIncarnation, s.Incarnation)
	w.string(fieldStreamTopic, s.Topic)
	if s.TopicID != [16]byte{} {
		w.bytes(fieldStreamTopicID, s.TopicID[:])
	}
	w.uint(fieldStreamPartition, uint64(s.Partition))
	w.close(n)
}

func streamSize(s *machine.Stream) int { return 48 + len(s.Subscription) + len(s.Topic) }

// readStream copies the strings, so that a stored row does not retain a log entry.
func readStream(b []byte, s *machine.Stream) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldStreamSubscription:
			s.Subscription = strings.Clone(r.string())
		case fieldStreamIncarnation:
			s.Incarnation = r.u64()
		case fieldStreamTopic:
			s.Topic = strings.Clone(r.string())
		case fieldStreamTopicID:
			id := r.bytes()
			if len(id) != len(s.TopicID) {
				return fmt.Errorf("%w: topic ID has %d bytes", ErrMalformed, len(id))
			}
			copy(s.TopicID[:], id)
		case fieldStreamPartition:
			s.Partition = r.u32()
		default:
			r.unknown("stream")
		}
	}
	return r.err
}

func (w *writer) ingest(c *machine.Ingest) {
	w.require(feature.Level4, "invocations from records of event streams")
	w.stream(fieldIngestStream, &c.Stream)
	w.int(fieldIngestPrev, c.Prev)
	for i := range c.Records {
		rec := &c.Records[i]
		n := w.open(fieldIngestRecords, 16+invokeSize(&rec.Invoke))
		w.int(fieldIngestRecordOffset, rec.Offset)
		w.invoke(fieldIngestRecordInvoke, &rec.Invoke)
		w.close(n)
	}
	w.uint(fieldIngestGeneration, c.Generation)
}

// IngestRecordSize estimates the encoded size of a record, erring on the high side.
func IngestRecordSize(r *machine.IngestRecord) int { return 24 + invokeSize(&r.Invoke) }

func ingestSize(c *machine.Ingest) int {
	size := 48 + streamSize(&c.Stream)
	for i := range c.Records {
		size += IngestRecordSize(&c.Records[i])
	}
	return min(size, math.MaxInt32)
}

func readIngest(b []byte, c *machine.Ingest) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldIngestStream:
			decodeInto(&r, &c.Stream, readStream)
		case fieldIngestPrev:
			c.Prev = r.i64()
		case fieldIngestGeneration:
			c.Generation = r.u64()
		case fieldIngestRecords:
			decodeInto(&r, grow(&r, &c.Records), readIngestRecord)
		default:
			r.unknown("ingest")
		}
	}
	return r.err
}

func readIngestRecord(b []byte, rec *machine.IngestRecord) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldIngestRecordOffset:
			rec.Offset = r.i64()
		case fieldIngestRecordInvoke:
			decodeInto(&r, &rec.Invoke, readInvoke)
		default:
			r.unknown("ingest record")
		}
	}
	return r.err
}

func (w *writer) putPosition(field protowire.Number, c *machine.PutPosition) {
	w.require(feature.Level4, "positions in event streams")
	n := w.open(field, positionSize(&c.Position)+8)
	p := w.open(fieldPutPositionPosition, positionSize(&c.Position))
	w.position(&c.Position)
	w.close(p)
	w.close(n)
}

func readPutPosition(b []byte, c *machine.PutPosition) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldPutPositionPosition:
			decodeInto(&r, &c.Position, readPosition)
		default:
			r.unknown("put position")
		}
	}
	return r.err
}

// AppendPosition appends the record of a position to b.
func AppendPosition(b []byte, p *machine.StreamPosition) []byte {
	w := writer{b: b}
	w.position(p)
	return w.b
}

// DecodePosition decodes the record of a position, which does not alias b.
func DecodePosition(b []byte) (p machine.StreamPosition, err error) {
	err = readPosition(b, &p)
	return decoded(p, "stream position", err)
}

func (w *writer) position(p *machine.StreamPosition) {
	w.stream(fieldStreamPositionStream, &p.Stream)
	w.int(fieldStreamPositionNext, p.Next)
	w.int(fieldStreamPositionLeaderEpoch, p.LeaderEpoch)
	w.string(fieldStreamPositionRouting, p.Routing)
	w.uint(fieldStreamPositionSkipped, p.Skipped)
	w.uint(fieldStreamPositionDeadLettered, p.DeadLettered)
	if r := p.Blocked; r != nil {
		n := w.open(fieldStreamPositionBlocked, 48+len(r.Reason)+len(r.Message))
		w.int(fieldBlockedRecordOffset, r.Offset)
		w.string(fieldBlockedRecordReason, r.Reason)
		w.string(fieldBlockedRecordMessage, r.Message)
		w.int(fieldBlockedRecordSince, r.Since)
		w.close(n)
	}
	w.int(fieldStreamPositionAt, p.At)
}

func positionSize(p *machine.StreamPosition) int {
	size := 96 + streamSize(&p.Stream) + len(p.Routing)
	if p.Blocked != nil {
		size += 56 + len(p.Blocked.Reason) + len(p.Blocked.Message)
	}
	return size
}

func readPosition(b []byte, p *machine.StreamPosition) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldStreamPositionStream:
			decodeInto(&r, &p.Stream, readStream)
		case fieldStreamPositionNext:
			p.Next = r.i64()
		case fieldStreamPositionLeaderEpoch:
			p.LeaderEpoch = r.i64()
		case fieldStreamPositionRouting:
			p.Routing = strings.Clone(r.string())
		case fieldStreamPositionSkipped:
			p.Skipped = r.u64()
		case fieldStreamPositionDeadLettered:
			p.DeadLettered = r.u64()
		case fieldStreamPositionBlocked:
			p.Blocked = decodeNew(&r, readBlockedRecord)
		case fieldStreamPositionAt:
			p.At = r.i64()
		default:
			r.unknown("stream position")
		}
	}
	return r.err
}

func readBlockedRecord(b []byte, p *machine.BlockedRecord) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldBlockedRecordOffset:
			p.Offset = r.i64()
		case fieldBlockedRecordReason:
			p.Reason = strings.Clone(r.string())
		case fieldBlockedRecordMessage:
			p.Message = strings.Clone(r.string())
		case fieldBlockedRecordSince:
			p.Since = r.i64()
		default:
			r.unknown("blocked record")
		}
	}
	return r.err
}

func (w *writer) forgetStreams(field protowire.Number, c *machine.ForgetStreams) {
	w.require(feature.Level4, "the end of event streams")
	n := w.open(field, sizeHint)
	w.string(fieldForgetStreamsSubscription, c.Subscription)
	w.uint(fieldForgetStreamsBefore, c.Before)
	w.bool(fieldForgetStreamsPositions, c.Positions)
	w.close(n)
}

func readForgetStreams(b []byte, c *machine.ForgetStreams) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldForgetStreamsSubscription:
			c.Subscription = strings.Clone(r.string())
		case fieldForgetStreamsBefore:
			c.Before = r.u64()
		case fieldForgetStreamsPositions:
			c.Positions = r.bool()
		default:
			r.unknown("forget streams")
		}
	}
	return r.err
}
