package feature

import (
	"fmt"
	"strconv"
	"time"
)

// Level is a feature level. Levels are only compared.
type Level uint32

// The feature levels. Levels are only added, each with a row in the table of changes.
const (
	// Level1 is what the first release writes. That release knows nothing of levels, so
	// a node that announces none is at this one.
	Level1 Level = 1
	// Level2 is the second release.
	Level2 Level = 2
	// Level3 is the third release.
	Level3 Level = 3
	// Level4 is everything that was added after it.
	Level4 Level = 4
)

const (
	// Newest is the highest level that this source code can read and write.
	Newest = Level4
	// Oldest is the lowest cluster level that this server works with.
	Oldest = Level1

	// A level is stored in one byte of a log entry's envelope.
	_ = uint(127 - Newest)
)

// limit lowers what this server supports. It is set by the linker, so that tests can
// build an older server: -ldflags '-X platform/internal/feature.limit=1'.
var limit string

var supported = parseLimit(limit)

// Supported returns the highest level that this server reads and writes. It is Newest
// unless the build was limited. It differs between servers, so nothing that must be
// identical on all replicas may depend on it.
func Supported() Level { return supported }

func parseLimit(text string) Level {
	if text == "" {
		return Newest
	}
	v, err := strconv.ParseUint(text, 10, 32)
	if l := Level(v); err == nil && l >= Oldest && l <= Newest {
		return l
	}
	panic(fmt.Sprintf("feature.limit set by the linker is %q, want a level from %d to %d", text, Oldest, Newest))
}

// Announced returns the level of a node that announced v, which is 0 for servers that
// announce none.
func Announced(v uint32) Level { return max(Level(v), Level1) }

// Error means that the cluster's level does not include a feature yet. Nothing was written
// or sent. A retry succeeds once all members support the level and the cluster level has
// risen.
type Error struct {
	What  string // what was refused
	Needs Level  // the first level that includes it
	Level Level  // the cluster's level
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s needs feature level %d, the cluster is at level %d: upgrade all nodes, see `platform cluster status`",
		e.What, e.Needs, e.Level)
}

// UnsupportedError means that this server does not support the cluster's level. The server
// must not participate.
type UnsupportedError struct {
	Cluster   Level     // the level of the cluster, or of something that the cluster wrote
	Since     time.Time // when the cluster reached it; zero: unknown
	Supported Level     // of the server that was refused
}

func (e *UnsupportedError) Error() string {
	since := ""
	if !e.Since.IsZero() {
		since = " since " + e.Since.UTC().Format(time.RFC3339)
	}
	if e.Cluster < Oldest {
		return fmt.Sprintf("this server needs feature level %d or higher; the cluster is at %d%s; upgrade the cluster to an intermediate release first",
			Oldest, e.Cluster, since)
	}
	return fmt.Sprintf("this server supports feature level %d; the cluster is at %d%s; upgrade this node", e.Supported, e.Cluster, since)
}

// CheckCluster returns an *UnsupportedError if this server does not support the cluster's
// level, which was reached at since.
func CheckCluster(cluster Level, since time.Time) error {
	return Check(supported, cluster, since)
}

// Check is CheckCluster for a server with the given level.
func Check(supports, cluster Level, since time.Time) error {
	if cluster > supports || cluster < Oldest {
		return &UnsupportedError{Cluster: cluster, Since: since, Supported: supports}
	}
	return nil
}

// Require returns an *Error if level is below needs.
func Require(level, needs Level, what string) error {
	if level >= needs {
		return nil
	}
	return &Error{What: what, Needs: needs, Level: level}
}
