package process

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHeadroomFollowsTheScannableHeap(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		live, scan uint64
		standard   int
		want       int
	}{
		{0, 0, 100, 100},
		{20 * mib, 10 * mib, 100, 100},   // little: as ever
		{480 * mib, 10 * mib, 100, 10},   // payloads: 48 MiB more
		{400 * mib, 200 * mib, 100, 50},  // half of it
		{400 * mib, 400 * mib, 100, 100}, // all of it has pointers
		{4000 * mib, 0, 100, 10},         // never nearly always
		{400 * mib, 400 * mib, 50, 50},
	} {
		require.Equal(t, c.want, headroomPercent(c.live, c.scan, c.standard), "%+v", c)
	}
}

var payload []byte

func TestTheCollectorIsTunedWhilePayloadsFillTheHeap(t *testing.T) {
	percent := func() int {
		now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(now)
		return int(now[0].Value.Uint64())
	}
	before := percent()
	defer debug.SetGCPercent(before)
	debug.SetGCPercent(100)
	stop := TuneCollector()
	payload = make([]byte, 512<<20) // not written, so it takes no memory
	require.Eventually(t, func() bool {
		payload[0]++
		debug.FreeOSMemory()
		return percent() < 20
	}, time.Minute, 10*time.Millisecond)
	payload = nil
	require.Eventually(t, func() bool {
		debug.FreeOSMemory()
		return percent() == 100
	}, time.Minute, 10*time.Millisecond)
	stop()
	require.Equal(t, 100, percent())
}
