package kafka

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The lag of a blocked topic partition is the age of the record that blocks it.
func TestTheLagOfABlockedRecord(t *testing.T) {
	w := newTestCluster(t, 1)
	w.topic("orders", 1)
	old, late := record("orders", 0, "a", "1"), record("orders", 0, "", "2")
	old.Timestamp, late.Timestamp = time.Now().Add(-3*time.Hour), time.Now().Add(-time.Hour)
	w.produce(old, late)
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("it blocks", func() bool { return h.status("orders", 0).Blocked != nil })
	require.InDelta(t, time.Hour.Seconds(), h.status("orders", 0).LagSeconds, 120)
}

// Producers choose timestamps, and operators see those
// of such records: the years of RFC 3339 have four digits.
func TestTimestampsFarInTheFuture(t *testing.T) {
	now := time.Now()
	require.Equal(t, now, view(&kgo.Record{Timestamp: now}).Timestamp)
	require.Equal(t, 9999, view(&kgo.Record{Timestamp: time.UnixMilli(now.UnixMicro())}).Timestamp.Year())
	require.Equal(t, 9999, view(&kgo.Record{Timestamp: time.UnixMilli(math.MaxInt64)}).Timestamp.Year())
	require.Equal(t, 1, view(&kgo.Record{Timestamp: time.UnixMilli(math.MinInt64)}).Timestamp.Year())
}
