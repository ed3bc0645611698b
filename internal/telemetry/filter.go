package telemetry

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
)

// levelOff is above every level.
const levelOff = slog.Level(math.MaxInt32)

// LevelTrace is the level below Debug that the filter calls trace.
const LevelTrace = slog.LevelDebug - 4

var levels = map[string]slog.Level{
	"trace": LevelTrace, "debug": slog.LevelDebug, "info": slog.LevelInfo,
	"warn": slog.LevelWarn, "warning": slog.LevelWarn, "error": slog.LevelError, "off": levelOff,
}

// Filter decides by component which levels are logged.
type Filter struct {
	rest    slog.Level
	targets []target // longest name first, so that the first match is the closest
}

type target struct {
	name  string
	level slog.Level
}

// ParseFilter reads a filter such as "warn,platform=info,platform/invoker=debug":
// a level for everything, and levels for components that have the name or stand
// below it. Levels are trace, debug, info, warn, error and off. Without a level
// for everything, the rest logs at error.
func ParseFilter(text string) (Filter, error) {
	filter := Filter{rest: slog.LevelError}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, word, named := strings.Cut(part, "=")
		if !named {
			name, word = "", part
		}
		level, known := levels[strings.ToLower(strings.TrimSpace(word))]
		if !known {
			return Filter{}, fmt.Errorf("%q is not a level; use trace, debug, info, warn, error or off", word)
		}
		if !named {
			filter.rest = level
			continue
		}
		filter.targets = append(filter.targets, target{strings.TrimSpace(name), level})
	}
	slices.SortStableFunc(filter.targets, func(a, b target) int { return cmp.Compare(len(b.name), len(a.name)) })
	return filter, nil
}

// Level returns the lowest level that is logged for a component. A logger without
// a component belongs to the server itself, "platform".
func (f Filter) Level(component string) slog.Level {
	component = cmp.Or(component, rootComponent)
	for _, t := range f.targets {
		if rest, below := strings.CutPrefix(component, t.name); below && (rest == "" || rest[0] == '/' || rest[0] == ':') {
			return t.level
		}
	}
	return f.rest
}
