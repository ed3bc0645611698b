package stats

import (
	"runtime"
	"testing"
	"unsafe"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// The names of the first invocation of a handler are parts of its log entry, which has up to 52 MiB.
func TestCountersDoNotRetainLogEntries(t *testing.T) {
	h := NewHandlers(prometheus.NewRegistry(), "test", true)
	c := NewCounters(h)
	count := func() weak.Pointer[byte] {
		entry := make([]byte, 1<<20)
		copy(entry, "Greeter")
		c.Started(unsafe.String(&entry[0], 7))
		c.Ended(unsafe.String(&entry[0], 7), unsafe.String(&entry[0], 5), EndSuccess, 0)
		return weak.Make(&entry[0])
	}
	entry := count()
	runtime.GC()
	require.Nil(t, entry.Value())
	require.Equal(t, []string{"Greeter"}, c.Services())
	runtime.KeepAlive(h)
}
