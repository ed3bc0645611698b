package kafka

import (
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
