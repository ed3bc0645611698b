package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/mattn/go-isatty"

	"platform/internal/errcode"
)

const (
	componentKey  = "component"
	rootComponent = "platform"
)

// errorCodeKey is the attribute that carries the code of a coded error.
const errorCodeKey = "platform.error.code"

// Format is the format of log lines.
type Format string

// The formats of log lines.
const (
	Pretty  Format = "pretty"  // one line, coloured on a terminal
	Compact Format = "compact" // one line without colours
	JSON    Format = "json"    // one object per line
)

// LogOptions configures a logger.
type LogOptions struct {
	Format      Format // default Pretty
	Filter      string // levels, see ParseFilter
	DisableANSI bool   // no colours
}

// NewLogger returns the server's logger, which writes warnings and errors to stderr and
// other records to stdout, and its levels. The error carries RT0002.
func NewLogger(o LogOptions, stdout, stderr io.Writer) (*slog.Logger, *Levels, error) {
	levels, err := newLevels(o.Filter)
	if err != nil {
		return nil, nil, errcode.New(errcode.RT0002, "configuration: log-filter: %w", err)
	}
	format := func(w io.Writer) slog.Handler {
		switch o.Format {
		case JSON:
			return newJSONHandler(w)
		case Compact:
			return newLineHandler(w, false)
		}
		return newLineHandler(w, !o.DisableANSI && wantsColour(w))
	}
	split := &handler{low: format(stdout), high: format(stderr), levels: levels, level: levels.of("")}
	return slog.New(split), levels, nil
}

// Also returns a logger that passes the records of log, which NewLogger made, to another handler, too.
func Also(log *slog.Logger, other slog.Handler) *slog.Logger {
	both := *log.Handler().(*handler)
	both.also = other
	return slog.New(&both)
}

// wantsColour reports whether w is a terminal that supports colours and NO_COLOR is unset.
func wantsColour(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isatty.IsTerminal(file.Fd())
}

// handler filters records by component and splits them by level.
type handler struct {
	low, high slog.Handler
	also      slog.Handler // nil: none
	levels    *Levels
	level     *slog.LevelVar // of the bound component
	grouped   bool           // inside a group, the component can no longer change
}

// Enabled applies the level of the bound component.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

// Handle adds the code of a coded error and writes the record.
func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	if code, ok := codeOf(record); ok {
		record = record.Clone()
		record.AddAttrs(slog.String(errorCodeKey, string(code))) //nolint:sloglint // a documented name
	}
	out := h.low
	if record.Level >= slog.LevelWarn {
		out = h.high
	}
	if h.also != nil {
		_ = h.also.Handle(ctx, record) // it drops what it has no room for, and logs that itself
	}
	if err := out.Handle(ctx, record); err != nil {
		return fmt.Errorf("write log record: %w", err)
	}
	return nil
}

// WithAttrs binds attributes; a component attribute selects the level.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	bound := *h
	bound.low, bound.high = h.low.WithAttrs(attrs), h.high.WithAttrs(attrs)
	if h.also != nil {
		bound.also = h.also.WithAttrs(attrs)
	}
	for _, a := range attrs {
		if a.Key == componentKey && !h.grouped {
			bound.level = h.levels.of(a.Value.String())
		}
	}
	return &bound
}

// WithGroup opens a group.
func (h *handler) WithGroup(name string) slog.Handler {
	bound := *h
	bound.low, bound.high = h.low.WithGroup(name), h.high.WithGroup(name)
	if h.also != nil {
		bound.also = h.also.WithGroup(name)
	}
	bound.grouped = h.grouped || name != ""
	return &bound
}

func codeOf(record slog.Record) (code errcode.Code, ok bool) {
	record.Attrs(func(a slog.Attr) bool {
		if err, isError := a.Value.Any().(error); isError {
			code, ok = errcode.Of(err)
		}
		return !ok
	})
	return code, ok
}
