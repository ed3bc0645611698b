package otlp

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"

	"platform/internal/logsample"
)

// Report writes what the SDK of OpenTelemetry reports to the log of the process; otherwise it writes
// lines of another format to the standard error output. Errors are logged once a minute.
func Report(log *slog.Logger) {
	sampler := logsample.New[struct{}](1, time.Minute, 1)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if errors.Is(err, context.Canceled) {
			return // the server stops, and exports once more
		}
		if held, admitted := sampler.Admit(struct{}{}, time.Now()); admitted {
			log.Warn("OpenTelemetry reported an error", "similar_not_shown", held, "err", err)
		}
	}))
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
}
