package store

import (
	"encoding/binary"

	"platform/partition/machine"
)

// subscription appends the prefix of the rows of a subscription.
func (s space) subscription(b []byte, table byte, id string) []byte {
	return appendPart(s.table(b, table), id)
}

// incarnation appends the prefix of the ingested rows of an incarnation of a subscription.
func (s space) incarnation(b []byte, subscription string, incarnation uint64) []byte {
	return binary.BigEndian.AppendUint64(s.subscription(b, tableIngested, subscription), incarnation)
}

func (s space) ingested(b []byte, stream *machine.Stream) []byte {
	b = s.incarnation(b, stream.Subscription, stream.Incarnation)
	b = append(appendPart(b, stream.Topic), stream.TopicID[:]...)
	return binary.BigEndian.AppendUint32(b, stream.Partition)
}

func (s space) position(b []byte, stream *machine.Stream) []byte {
	b = appendPart(s.subscription(b, tablePositions, stream.Subscription), stream.Topic)
	return binary.BigEndian.AppendUint32(b, stream.Partition)
}

// incarnationOf decodes the subscription and incarnation from an ingested key without the
// prefix.
func incarnationOf(rest []byte) (subscription string, incarnation uint64, ok bool) {
	subscription, rest, ok = cutPart(rest)
	if !ok || len(rest) < 8 {
		return "", 0, false
	}
	return subscription, binary.BigEndian.Uint64(rest), true
}
