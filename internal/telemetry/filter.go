package telemetry

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"unicode"
)

// levelOff is above every level.
const levelOff = slog.Level(math.MaxInt32)

// levelTrace is the level below Debug that the filter calls trace.
const levelTrace = slog.LevelDebug - 4

var levels = map[string]slog.Level{
	"trace": levelTrace, "debug": slog.LevelDebug, "info": slog.LevelInfo,
	"warn": slog.LevelWarn, "warning": slog.LevelWarn, "error": slog.LevelError, "off": levelOff,
}

// Filter selects log levels by component.
type Filter struct {
	rest    slog.Level
	targets []target // longest name first, so that the first match is the most specific
}

type target struct {
	name  string
	level slog.Level
}

// formerRoot means rootComponent in the filters of configuration files that are accepted.
const formerRoot = "restate"

// ParseFilter parses a filter such as "warn,platform=info,platform/invoker=debug": a
// default level, and levels for components with the given name or path prefix. Levels are
// trace, debug, info, warn, error and off. The default level is error if omitted.
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
		if name = strings.TrimSpace(name); strings.ContainsFunc(name, unicode.IsControl) {
			return Filter{}, fmt.Errorf("the target %q has control characters", name)
		}
		if name == formerRoot {
			name = rootComponent
		}
		filter.targets = append(filter.targets, target{name, level})
	}
	slices.SortStableFunc(filter.targets, func(a, b target) int { return cmp.Compare(len(b.name), len(a.name)) })
	return filter, nil
}

// Level returns the lowest level logged for a component. A logger without a component
// belongs to "platform".
func (f Filter) Level(component string) slog.Level {
	component = cmp.Or(component, rootComponent)
	for _, t := range f.targets {
		if rest, below := strings.CutPrefix(component, t.name); below && (rest == "" || rest[0] == '/' || rest[0] == ':') {
			return t.level
		}
	}
	return f.rest
}
