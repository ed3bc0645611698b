package tracing

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/otlp"
)

// settings are those of an environment.
func settings(env map[string]string) *Settings {
	return &Settings{Export: otlp.Settings{Getenv: func(name string) string { return env[name] }}}
}

func TestSamplers(t *testing.T) {
	for _, c := range []struct {
		sampler, argument string
		ratio             float64
		parentFirst       bool
	}{
		{"", "", 1, true},
		{"always_on", "", 1, false},
		{"parentbased_always_off", "", 0, true},
		{"traceidratio", "0.25", 0.25, false},
		{"parentbased_traceidratio", "0.5", 0.5, true},
	} {
		ratio, parentFirst, err := settings(map[string]string{"OTEL_TRACES_SAMPLER": c.sampler, "OTEL_TRACES_SAMPLER_ARG": c.argument}).sampler()
		require.NoError(t, err)
		require.Equal(t, c.ratio, ratio, c.sampler)
		require.Equal(t, c.parentFirst, parentFirst, c.sampler)
	}
	for sampler, argument := range map[string]string{"jaeger_remote": "", "traceidratio": "2", "parentbased_traceidratio": "NaN"} {
		_, _, err := settings(map[string]string{"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": argument}).sampler()
		require.Error(t, err, sampler)
	}
	configured := settings(map[string]string{"OTEL_TRACES_SAMPLER": "always_off"})
	half := 0.5
	configured.Ratio = &half
	ratio, parentFirst, err := configured.sampler()
	require.NoError(t, err)
	require.Equal(t, 0.5, ratio)
	require.True(t, parentFirst)
}
