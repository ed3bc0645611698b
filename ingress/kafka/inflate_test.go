package kafka

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
)

// Batches that are much larger in memory than on the wire are decompressed a few at a time, and each of
// their records is delivered once.
func TestCompressedBatchesDoNotFillTheMemory(t *testing.T) {
	const batches = 60
	w := newTestCluster(t, 2, kfake.NumBrokers(1))
	w.topic("orders", 2)
	producer, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	require.NoError(t, err)
	t.Cleanup(producer.Close)
	w.client = producer
	value := make([]byte, 900<<10)
	want := map[int32][]int64{}
	for i := range batches {
		p := int32(i % 2)
		want[p] = append(want[p], w.produce(&kgo.Record{Topic: "orders", Partition: p, Value: value})...)
	}
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"}, func(s *subscription.Subscription) { s.MaxInFlight = 1 })
	h := w.start().leadAll()
	most := int64(0)
	w.eventually("all are stored", func() bool {
		most = max(most, h.engine.inflated.Load())
		return w.createdCount() >= batches
	})
	w.requireOnce("orders", want)
	require.LessOrEqual(t, most, int64(8<<20+len(value)+1<<10), "as configured for the node")
	require.Greater(t, most, int64(len(value)), "fetches have several batches")
}

// The records of a batch can take much more memory than its bytes.
func TestBatchesWithManyRecordsOrHeadersAreRefused(t *testing.T) {
	record := func(value []byte, headers int) []byte {
		b := []byte{0, 0, 0, 1} // attributes, timestamp, offset, no key
		b = append(binary.AppendVarint(b, int64(len(value))), value...)
		b = append(binary.AppendVarint(b, int64(headers)), make([]byte, 2*headers)...)
		return append(binary.AppendVarint(nil, int64(len(b))), b...)
	}
	const most = decompressedBytes / 40
	for name, c := range map[string]struct {
		batch   []byte
		refused bool
	}{
		"a large value":      {record(make([]byte, 16<<20), 1), false},
		"headers":            {record(nil, most/2), false},
		"too many headers":   {record(nil, most+1), true},
		"records":            {bytes.Repeat(record([]byte("v"), 2), most/16), false},
		"too many records":   {bytes.Repeat(record(nil, 0), most/3), true},
		"in several records": {bytes.Repeat(record(nil, most/8), 9), true},
		"malformed":          {make([]byte, 16<<20), false},
	} {
		var buf bytes.Buffer
		compressor, err := kgo.DefaultCompressor(kgo.ZstdCompression())
		require.NoError(t, err)
		sent, codec := compressor.Compress(&buf, c.batch)
		var total atomic.Int64
		inflater, err := newInflater(&total, 1<<30)
		require.NoError(t, err)
		out, err := inflater.Decompress(sent, codec)
		if c.refused {
			require.Less(t, len(sent), 64<<10, name)
			require.ErrorIs(t, err, kgo.ErrMaxDecompress, name)
			require.Zero(t, total.Load(), name)
			continue
		}
		require.NoError(t, err, name)
		require.Len(t, out, len(c.batch), name)
	}
}
