package node

import (
	"context"
	"runtime/debug"
	"time"
)

const (
	// quietTick is how often the node looks whether it is quiet, quietTicks for how
	// many of them nothing must have happened.
	quietTick  = time.Second
	quietTicks = 3
)

// returnMemory gives unused memory back to the system each time the node has become
// quiet. The runtime alone would keep what the busiest moment needed for minutes.
func returnMemory(ctx context.Context, applied func() uint64) error {
	tick := time.NewTicker(quietTick)
	defer tick.Stop()
	last, quiet := applied(), quietTicks // a fresh start owes nothing
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
