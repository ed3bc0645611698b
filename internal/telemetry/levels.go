package telemetry

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// MaxLevelOverride is the longest time for which levels can be changed while the server runs.
const MaxLevelOverride = 7 * 24 * time.Hour

// Levels are the levels of a logger, which can be changed while it is in use. It is safe for
// concurrent use.
type Levels struct {
	mu         sync.Mutex // covers the fields below
	configured string     // filter
	current    string     // filter
	filter     Filter     // current, parsed
	components map[string]*slog.LevelVar
	until      time.Time // zero: current is the configured filter, or holds until a restart
	restore    *time.Timer
}

// LevelState is what a Levels is set to.
type LevelState struct {
	Filter     string    // in effect, see ParseFilter
	Configured string    // by log-filter
	Until      time.Time // when the configured filter is restored; zero: not
	Components []string  // that have logged something or can do so
}

func newLevels(text string) (*Levels, error) {
	filter, err := ParseFilter(text)
	if err != nil {
		return nil, err
	}
	return &Levels{configured: text, current: text, filter: filter, components: make(map[string]*slog.LevelVar)}, nil
}

// of returns the level of a component. Components are named in the code, so there are few.
func (l *Levels) of(component string) *slog.LevelVar {
	l.mu.Lock()
	defer l.mu.Unlock()
	level := l.components[component]
	if level == nil {
		level = new(slog.LevelVar)
		level.Set(l.filter.Level(component))
		l.components[component] = level
	}
	return level
}

// State returns the filter in effect.
func (l *Levels) State() LevelState {
	l.mu.Lock()
	defer l.mu.Unlock()
	named := slices.DeleteFunc(slices.Sorted(maps.Keys(l.components)), func(c string) bool { return c == "" })
	return LevelState{Filter: l.current, Configured: l.configured, Until: l.until, Components: named}
}

// Set changes the filter until the server restarts or, if d is not zero, for that time. An
// empty filter restores the configured one.
func (l *Levels) Set(text string, d time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text == "" {
		text, d = l.configured, 0
	}
	filter, err := ParseFilter(text)
	if err != nil {
		return err
	}
	if l.restore != nil {
		l.restore.Stop()
		l.restore, l.until = nil, time.Time{}
	}
	l.apply(text, filter)
	if d > 0 {
		until := time.Now().Add(d)
		l.until, l.restore = until, time.AfterFunc(d, func() { l.expire(until) })
	}
	return nil
}

// Configure changes the configured filter. A filter that was set instead of it remains in effect.
func (l *Levels) Configure(text string) error {
	filter, err := ParseFilter(text)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == l.configured && l.restore == nil {
		l.apply(text, filter)
	}
	l.configured = text
	return nil
}

// expire restores the configured filter, unless another one was set meanwhile.
func (l *Levels) expire(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.until.Equal(until) {
		return
	}
	configured, _ := ParseFilter(l.configured) // it was parsed before
	l.until, l.restore = time.Time{}, nil
	l.apply(l.configured, configured)
}

func (l *Levels) apply(text string, filter Filter) {
	l.current, l.filter = text, filter
	for component, level := range l.components {
		level.Set(filter.Level(component))
	}
}
