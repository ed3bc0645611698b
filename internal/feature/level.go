package feature

import (
	"fmt"
	"strconv"
)

// Level is a feature level. It is compared, never computed with.
type Level uint32

// The feature levels. Levels are only added, each with a row in the table of changes.
const (
	// Level1 is what the first release writes. That release knows nothing of levels, so
	// a node that announces none is at this one.
	Level1 Level = 1
	// Level2 is everything that was added after it.
	Level2 Level = 2
)

const (
	// Newest is the highest level that this source code can read and write.
	Newest = Level2
	// Oldest is the lowest cluster level that this server works with.
	Oldest = Level1

	// A level is stored in one byte of a log entry's envelope.
	_ = uint(127 - Newest)
)

// limit lowers what this server supports. It is set by the linker, so that tests can
// build an older server: -ldflags '-X platform/internal/feature.limit=1'.
var limit string

var supported = parseLimit(limit)

// Supported is the highest level that this server reads and writes. It is Newest unless
// the build was limited. It differs between servers, so nothing that must be the same on
// all replicas may depend on it.
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

// Announced is the level of a node that announced v, which is 0 for servers that
// announce none.
func Announced(v uint32) Level { return max(Level(v), Level1) }

// Error refuses something that the cluster's level does not include yet. Nothing was
// written or sent. It succeeds once all members support the level and the cluster level
// has risen.
type Error struct {
	What  string // what was refused
	Needs Level  // the first level that includes it
	Level Level  // the cluster's level
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s needs feature level %d, the cluster is at level %d: upgrade all nodes, see `platform cluster status`",
		e.What, e.Needs, e.Level)
}

// Require returns an *Error when level does not include what was added at needs.
func Require(level, needs Level, what string) error {
	if level >= needs {
		return nil
	}
	return &Error{What: what, Needs: needs, Level: level}
}
