package store

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBackgroundErrorsAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := backgroundErrors{log: slog.New(slog.NewTextHandler(&out, nil))}
		for range 1000 {
			b.report(errors.New("no space left on device"))
			time.Sleep(backgroundLogInterval / 100)
		}
		require.Equal(t, 10, strings.Count(out.String(), "no space left"))
		require.Contains(t, out.String(), "repeated=99")
	})
}
