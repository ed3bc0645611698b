package process

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"platform/internal/units"
)

// PayloadLimits is how many bytes of payloads a node holds.
type PayloadLimits struct {
	Bodies     int64 // of requests and responses
	Connection int64 // of these, those of one connection
	Attempts   int64 // in transit to and from endpoints
}

// payloadShare: payloads may take one part in payloadShare of the memory limit of the process.
// The rest is for the tables and the log, about 250 MiB, for the entry that is being written, and
// for the collector.
const payloadShare = 2

// Fit returns the configured limits, lowered to what the memory limit of the process has room for (GOMEMLIMIT, or else nine tenths
// of the memory of the container, which becomes the limit). Above it the collector would run without end. largest is the size of
// the largest message, for which each limit has room.
func (p PayloadLimits) Fit(largest int64, log *slog.Logger) PayloadLimits {
	limit := limitMemory(os.Getenv("GOMEMLIMIT") != "", os.ReadFile)
	if limit == math.MaxInt64 {
		return p
	}
	lowered := p.within(limit/payloadShare, largest)
	if lowered != p {
		log.Info("memory for payloads is limited by GOMEMLIMIT or the container", "memory_limit", inMiB(limit), "bodies", inMiB(lowered.Bodies),
			"bodies_of_a_connection", inMiB(lowered.Connection), "attempts", inMiB(lowered.Attempts))
	}
	return lowered
}

// limitMemory sets the memory limit of the process in a container that has one, unless the operator has chosen it, and returns it. A
// process that exceeds the limit of its container is killed.
func limitMemory(chosen bool, read func(string) ([]byte, error)) int64 {
	if container := containerMemory(read); container > 0 && !chosen {
		debug.SetMemoryLimit(int64(container / 10 * 9))
	}
	return debug.SetMemoryLimit(-1)
}

// inMiB returns a size rounded to whole MiB: exact sizes that are no multiple of a unit are in bytes.
func inMiB(bytes int64) string {
	return fmt.Sprintf("%d MiB", (units.ByteSize(max(bytes, 0))+units.MiB/2)/units.MiB)
}

// within lowers the limits in proportion until they fit into so many bytes, except that each has
// room for the largest message.
func (p PayloadLimits) within(bytes, largest int64) PayloadLimits {
	sum := p.Bodies + p.Attempts
	if sum <= bytes {
		return p
	}
	share := float64(bytes) / float64(sum)
	lower := func(n int64) int64 { return max(min(n, largest), int64(float64(n)*share)) }
	p.Bodies, p.Attempts = lower(p.Bodies), lower(p.Attempts)
	p.Connection = min(p.Connection, p.Bodies)
	return p
}
