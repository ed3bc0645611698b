package kafka

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestFetchedRecordsBelongToASession(t *testing.T) {
	var f fetched
	first := f.begin(7)
	require.True(t, f.expects(first))
	f.add(&kgo.Record{Offset: 7})
	f.add(&kgo.Record{Offset: 9}) // 8 was compacted
	require.EqualValues(t, 10, f.next)
	require.EqualValues(t, 7, f.take().Offset)
	require.True(t, f.end())
	require.Empty(t, f.records)
	require.False(t, f.expects(first), "nothing is fetched")
	require.False(t, f.end())

	second := f.begin(8)
	require.False(t, f.expects(first))
	require.True(t, f.expects(second))
	require.EqualValues(t, 8, f.next)
}

func TestAWindowAdvancesOverDoneRecordsInOrder(t *testing.T) {
	var w window
	w.begin(5, -1)
	var p []*pending
	for i := range int64(3) {
		p = append(p, w.add(&kgo.Record{Offset: 5 + 2*i, LeaderEpoch: 3}))
	}
	w.end(p[1], delivered)
	require.Empty(t, w.advance(), "an earlier record is in flight")
	require.EqualValues(t, 5, w.next)
	require.EqualValues(t, -1, w.epoch)

	w.end(p[0], skipped)
	require.Equal(t, p[:2], w.advance())
	require.EqualValues(t, 8, w.next)
	require.EqualValues(t, 3, w.epoch)
	require.Equal(t, 1, w.inFlight)

	w.drop()
	require.Zero(t, w.inFlight)
	require.Empty(t, w.advance())
	require.EqualValues(t, 8, w.next, "the position remains")
}
