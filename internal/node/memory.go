package node

import (
	"context"
	"runtime/debug"
	"time"
)

const (
	// quietTick is the interval at which the node checks whether it is idle; it is idle after
	// quietTicks intervals without activity.
	quietTick  = time.Second
	quietTicks = 3
)

// returnMemory returns unused memory to the system each time the node has become idle. The runtime
// alone would keep the memory of the peak load for minutes.
func returnMemory(ctx context.Context, applied func() uint64) error {
	tick := time.NewTicker(quietTick)
	defer tick.Stop()
	last, quiet := applied(), quietTicks // a node that has just started has none to return
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := applied()
		if now != last {
			last, quiet = now, 0
			continue
		}
		if quiet++; quiet == quietTicks {
			debug.FreeOSMemory()
		}
	}
}
