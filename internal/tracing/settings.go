package tracing

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"platform/internal/otlp"
)

// Settings say which spans are exported, and where to.
type Settings struct {
	// Endpoint is the URL of a collector, see otlp.ParseEndpoint. Empty: what the variables
	// OTEL_EXPORTER_OTLP_… say, otherwise nothing is exported.
	Endpoint string
	Headers  map[string]string // of the requests to the collector
	// Ratio of the traces that begin at this cluster and are recorded, 0 to 1; nil: what
	// OTEL_TRACES_SAMPLER says, otherwise all. A trace that a caller began is recorded if
	// the caller records it.
	Ratio *float64
	// KeepFailed records failed invocations and attempts of traces that are not recorded.
	KeepFailed bool
	// KeepSlow records invocations that take at least this long likewise; 0: none.
	KeepSlow time.Duration

	Export otlp.Settings
}

// transport returns how to reach the collector; false if nothing is exported.
func (s *Settings) transport() (t otlp.Transport, enabled bool, err error) {
	if s.Endpoint == "" {
		return s.Export.Transport(otlp.Traces)
	}
	if t, err = otlp.ParseEndpoint(s.Endpoint, otlp.Traces); err != nil {
		return t, false, fmt.Errorf("tracing-endpoint: %w", err)
	}
	return t, true, s.Export.Check(otlp.Traces)
}

// sampler returns the share of new traces to record, and whether the decision of a caller
// takes precedence.
func (s *Settings) sampler() (ratio float64, parentFirst bool, err error) {
	if s.Ratio != nil {
		return *s.Ratio, true, nil
	}
	kind, parentFirst := strings.CutPrefix(s.Export.Getenv("OTEL_TRACES_SAMPLER"), "parentbased_")
	switch kind {
	case "":
		return 1, true, nil
	case "always_on":
		return 1, parentFirst, nil
	case "always_off":
		return 0, parentFirst, nil
	case "traceidratio":
		text := s.Export.Getenv("OTEL_TRACES_SAMPLER_ARG")
		if text == "" {
			return 1, parentFirst, nil
		}
		ratio, err = strconv.ParseFloat(text, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return 0, false, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %q is not a number from 0 to 1", text)
		}
		return ratio, parentFirst, nil
	}
	return 0, false, fmt.Errorf("OTEL_TRACES_SAMPLER: %q is unknown; it is always_on, always_off or traceidratio, also with the prefix parentbased_", kind)
}
