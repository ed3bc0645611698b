package telemetry

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"time"
)

// jsonHandler prints one JSON object per line: timestamp, level, fields (message and
// attributes) and target (the component).
type jsonHandler struct {
	mu    *sync.Mutex // serializes writes to w
	w     io.Writer
	bound []field
	group string
}

func newJSONHandler(w io.Writer) *jsonHandler { return &jsonHandler{mu: new(sync.Mutex), w: w} }

// Enabled returns true: the enclosing handler filters records.
func (h *jsonHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle writes one line.
func (h *jsonHandler) Handle(_ context.Context, record slog.Record) error {
	fields := map[string]any{"message": record.Message}
	target := rootComponent
	for _, f := range recordFields(h.bound, h.group, record) {
		if f.key == componentKey {
			target = f.value.String()
			continue
		}
		fields[f.key] = jsonValue(f.value)
	}
	line, err := json.Marshal(struct {
		Timestamp string         `json:"timestamp"`
		Level     string         `json:"level"`
		Fields    map[string]any `json:"fields"`
		Target    string         `json:"target"`
	}{record.Time.UTC().Format(time.RFC3339Nano), levelName(record.Level), fields, target})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err = h.w.Write(append(line, '\n'))
	return err
}

// WithAttrs binds attributes.
func (h *jsonHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	bound := *h
	bound.bound = appendFields(h.bound[:len(h.bound):len(h.bound)], h.group, attrs)
	return &bound
}

// WithGroup prefixes the keys that follow.
func (h *jsonHandler) WithGroup(name string) slog.Handler {
	bound := *h
	bound.group = joinGroup(h.group, name)
	return &bound
}

// jsonValue returns numbers and booleans unchanged and other values as text.
func jsonValue(v slog.Value) any {
	switch v.Kind() {
	case slog.KindBool, slog.KindInt64, slog.KindUint64:
		return v.Any()
	case slog.KindFloat64:
		if _, err := json.Marshal(v.Float64()); err == nil {
			return v.Float64()
		}
	}
	return valueText(v)
}
