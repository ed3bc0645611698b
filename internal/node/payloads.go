package node

import (
	"log/slog"
	"math"
	"runtime/debug"

	"platform/internal/config"
	"platform/internal/units"
)

// payloadLimits is how many bytes of payloads a node holds.
type payloadLimits struct {
	bodies     int64 // of requests and responses
	connection int64 // of these, those of one connection
	attempts   int64 // in transit to and from endpoints
}

// payloadShare: payloads may take one part in payloadShare of the memory limit of the process.
// The rest is for the tables and the log, about 250 MiB, for the entry that is being written, and
// for the collector.
const payloadShare = 2

// newPayloadLimits returns the configured limits, lowered to what the memory limit of the process
// (GOMEMLIMIT) has room for. Above that limit the collector would run without end.
func newPayloadLimits(cfg *config.Config, log *slog.Logger) payloadLimits {
	configured := payloadLimits{int64(cfg.Networking.BodyMemoryLimit), int64(cfg.Networking.ConnectionBodyMemory), int64(cfg.Worker.Invoker.MemoryLimit)}
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return configured
	}
	p := configured.within(limit/payloadShare, int64(cfg.Networking.MessageSizeLimit))
	if p != configured {
		log.Info("memory for payloads is limited by GOMEMLIMIT", "memory_limit", units.ByteSize(limit), "bodies", units.ByteSize(p.bodies),
			"bodies_of_a_connection", units.ByteSize(p.connection), "attempts", units.ByteSize(p.attempts))
	}
	return p
}

// within lowers the limits in proportion until they fit into so many bytes, except that each has
// room for the largest message.
func (p payloadLimits) within(bytes, largest int64) payloadLimits {
	sum := p.bodies + p.attempts
	if sum <= bytes {
		return p
	}
	share := float64(bytes) / float64(sum)
	lower := func(n int64) int64 { return max(min(n, largest), int64(float64(n)*share)) }
	p.bodies, p.attempts = lower(p.bodies), lower(p.attempts)
	p.connection = min(p.connection, p.bodies)
	return p
}
