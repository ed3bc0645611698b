package kafka

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/test/harness"
)

// TestCodecsAndSizes reads records of each compression codec, and of 0 bytes to 32 MB, byte by
// byte.
func TestCodecsAndSizes(t *testing.T) {
	b := startBrokers(t, 1)
	limit := "67108864"
	_, err := b.admin.CreateTopic(t.Context(), 4, b.factor, map[string]*string{"max.message.bytes": &limit}, "large")
	require.NoError(t, err)
	l, uri := startService(t)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 1})
	require.NoError(t, c.Nodes[0].Register(t.Context(), uri, false))
	post(t, c, "/kafka-clusters", map[string]any{"name": "main", "properties": map[string]string{"bootstrap.servers": b.list()}})

	want := map[recordID][32]byte{}
	source := rand.NewChaCha8([32]byte{7})
	for name, codec := range map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		producer, err := kgo.NewClient(kgo.SeedBrokers(b.list()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec),
			kgo.ProducerBatchMaxBytes(60<<20), kgo.BrokerMaxWriteBytes(80<<20))
		require.NoError(t, err)
		for i, size := range []int{0, 1, 1000, 100_000, 1 << 20, 5 << 20} {
			value := make([]byte, size)
			if i%2 == 1 { // the others are easy to compress
				_, _ = source.Read(value)
			}
			rec := &kgo.Record{Topic: "large", Partition: int32(i % 4), Value: value}
			require.NoError(t, producer.ProduceSync(t.Context(), rec).FirstErr(), "%s, %d bytes", name, size)
			want[recordID{"large", rec.Partition, rec.Offset}] = sha256.Sum256(value)
		}
		producer.Close()
	}
	value := make([]byte, 32<<20)
	_, _ = source.Read(value)
	producer, err := kgo.NewClient(kgo.SeedBrokers(b.list()), kgo.ProducerBatchMaxBytes(60<<20), kgo.BrokerMaxWriteBytes(80<<20), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer producer.Close()
	rec := &kgo.Record{Topic: "large", Partition: 1, Value: value[:32_000_000]}
	require.NoError(t, producer.ProduceSync(t.Context(), rec).FirstErr())
	want[recordID{"large", 1, rec.Offset}] = sha256.Sum256(rec.Value)

	post(t, c, "/subscriptions?check=true", map[string]any{
		"source": "kafka://main/large", "sink": "service://Bytes/run", "options": map[string]string{"auto.offset.reset": "earliest"},
	})
	await(t, l, len(want), 3*time.Minute)
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Equal(t, want, l.inputs)
	require.Empty(t, l.doubled)
}
