package process

import (
	"context"
	"runtime/debug"
	"time"
)

const (
	// idleTick is the interval at which the node checks whether it is idle; it is idle after
	// idleTicks intervals without activity.
	idleTick  = time.Second
	idleTicks = 3
)

// ReturnWhenIdle returns unused memory to the system each time the node has become idle, which means
// that applied has not changed for a few seconds. The runtime alone would keep the memory of the
// peak load for minutes.
func ReturnWhenIdle(ctx context.Context, applied func() uint64) error {
	tick := time.NewTicker(idleTick)
	defer tick.Stop()
	last, idle := applied(), idleTicks // a node that has just started has none to return
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := applied()
		if now != last {
			last, idle = now, 0
			continue
		}
		if idle++; idle == idleTicks {
			debug.FreeOSMemory()
		}
	}
}
