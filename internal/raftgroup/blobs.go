package raftgroup

import (
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// SeparateValues is the policy of Pebble databases for values from a few KiB on: flushes
// write them to blob files, so that compactions rewrite only keys.
func SeparateValues() pebble.ValueSeparationPolicy {
	return pebble.ValueSeparationPolicy{
		Enabled:     true,
		MinimumSize: 4 << 10,
		// A compaction rewrites values once its tables refer to more blob files than this.
		// Values are not read in the order of keys, so their locality does not matter.
		MaxBlobReferenceDepth: 256,
		RewriteMinimumAge:     time.Minute,
		TargetGarbageRatio:    0.5,
	}
}
