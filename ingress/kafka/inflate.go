package kafka

import (
	"errors"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// inflater decompresses the batches of a client. The size of a fetch only bounds compressed data,
// which can be a thousand times smaller.
type inflater struct {
	kgo.Decompressor // bounds a single batch
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
	bounded, err := kgo.NewClient(kgo.MaxDecompressBatchBytes(decompressedBytes)) // it never connects
	if err != nil {
		return nil, err
	}
	defer bounded.Close()
	inner, ok := bounded.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	if !ok {
		return nil, errors.New("the client has no decompressor")
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

// polled is called when all records were polled, or the client was closed.
func (i *inflater) polled() { i.total.Add(-i.held.Swap(0)) }
