package kafka

import (
	"encoding/binary"
	"errors"
	"reflect"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// inflater decompresses the batches of a client. The size of a fetch only bounds compressed data,
// which can be a thousand times smaller.
type inflater struct {
	kgo.Decompressor // that of newDecompressor
	total            *atomic.Int64
	limit            int64        // of total
	held             atomic.Int64 // decompressed and not polled yet
}

// maxInflated bounds the decompressed records of a fetch, unless a single batch is larger.
const maxInflated = 16 << 20

// errInflated ends a fetch that has decompressed too much. The client returns the records that it has;
// of topic partitions without any it returns this error, and they are fetched again.
var errInflated = errors.New("the fetch has decompressed enough records")

// newInflater returns what decompresses for a client. The clients of a node share total.
func newInflater(total *atomic.Int64, limit int64) (*inflater, error) {
	inner, err := newDecompressor()
	if err != nil {
		return nil, err
	}
	return &inflater{Decompressor: inner, total: total, limit: limit}, nil
}

// Decompress implements kgo.Decompressor.
func (i *inflater) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if held := i.held.Load(); codec != kgo.CodecNone && held > 0 && (held >= maxInflated || i.total.Load() >= i.limit) {
		return nil, errInflated
	}
	out, err := i.Decompressor.Decompress(src, codec)
	if err == nil && codec != kgo.CodecNone {
		i.held.Add(int64(len(out)))
		i.total.Add(int64(len(out)))
	}
	return out, err
}

// decompressor bounds a single batch of records: its bytes, and the memory that the client takes for the
// records in them.
type decompressor struct{ kgo.Decompressor }

func newDecompressor() (kgo.Decompressor, error) {
	bounded, err := kgo.NewClient(kgo.MaxDecompressBatchBytes(decompressedBytes)) // it never connects
	if err != nil {
		return nil, err
	}
	defer bounded.Close()
	inner, ok := bounded.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	if !ok {
		return nil, errors.New("the client has no decompressor")
	}
	return decompressor{inner}, nil
}

// Decompress implements kgo.Decompressor.
func (d decompressor) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	out, err := d.Decompressor.Decompress(src, codec)
	if err == nil && decodedBytes(out) > decompressedBytes {
		return nil, kgo.ErrMaxDecompress
	}
	return out, err
}

// Memory of what the client decodes, apart from keys and values, and the minimum size of an encoded record.
var (
	recordBase = int(reflect.TypeFor[kgo.Record]().Size())
	headerBase = int(reflect.TypeFor[kgo.RecordHeader]().Size())
)

const minRecord = 6

// decodedBytes returns the memory that the client takes for the records of a decompressed batch, besides
// that of the batch. A header of two bytes takes 40, so that a few kilobytes on the wire, which become 128 MiB, would
// take gigabytes.
func decodedBytes(batch []byte) (n int) {
	for {
		length, used := binary.Varint(batch)
		if used <= 0 || length < minRecord || length > int64(len(batch)-used) {
			return n // the client stops here, too
		}
		end := used + int(length)
		n += recordBase + headerBase*headersOf(batch[used:end])
		batch = batch[end:]
	}
}

// headersOf returns the number of headers of an encoded record; 0 if it is malformed.
func headersOf(record []byte) int {
	rest := record[1:] // attributes
	for range 2 {      // timestamp and offset
		_, used := binary.Varint(rest)
		rest = rest[max(used, 0):]
	}
	for range 2 { // key and value; -1 if there is none
		length, used := binary.Varint(rest)
		if used <= 0 || length > int64(len(rest)-used) {
			return 0
		}
		rest = rest[used+int(max(length, 0)):]
	}
	count, used := binary.Varint(rest)
	if used <= 0 || count > int64(len(rest)) {
		return 0
	}
	return int(max(count, 0))
}

// polled is called when all records were polled, or the client was closed.
func (i *inflater) polled() { i.total.Add(-i.held.Swap(0)) }
