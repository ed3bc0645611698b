package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStep(t *testing.T) {
	for text, want := range map[string]string{
		"echo":            "echo/1",
		"echo/64":         "echo/64",
		"steps":           "steps:10/1",
		"steps:3/2":       "steps:3/2",
		"counter:1000/64": "counter:1000/64",
		"counter/8":       "counter:1/8",
		"send/64":         "send:5000/64",
		"limit/64":        "limit:5/64",
		"payload/4":       "payload:65536/4",
		"echo/64@32":      "echo/64@32",
		"waiting:9@2":     "waiting:9/1@2",
		"sleep:7":         "sleep:7/1",
	} {
		s, err := parseStep(text)
		require.NoError(t, err, text)
		require.Equal(t, want, s.String(), text)
		again, err := parseStep(s.String())
		require.NoError(t, err)
		require.Equal(t, s.String(), again.String())
	}
}

func TestParseStepRejects(t *testing.T) {
	for text, reason := range map[string]string{
		"":          `unknown workload ""; use one of counter, echo, fanout, limit, patch, payload, replace, send, sleep, steps, timers, waiting`,
		"ecko/1":    `unknown workload "ecko"`,
		"echo:3/1":  "echo has no size",
		"echo/0":    `"0" is not a positive number`,
		"echo/":     `"" is not a positive number`,
		"steps:x/1": `"x" is not a positive number`,
		"steps:-1":  `"-1" is not a positive number`,
		"echo/1@0":  `"0" is not a positive number`,
		"echo/1/2":  `"1/2" is not a positive number`,
	} {
		_, err := parseStep(text)
		require.ErrorContains(t, err, reason, "%q", text)
	}
}

func TestParseSteps(t *testing.T) {
	list, err := parseSteps("echo/1, steps:10/4")
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, 4, list[1].workers)

	_, err = parseSteps("send/4,send:5000/4")
	require.ErrorContains(t, err, "duplicate step send:5000/4")
	_, err = parseSteps(defaultSteps)
	require.NoError(t, err)
}

func TestLoadTargets(t *testing.T) {
	list, err := loadTargets("peer, targets/platform-p1.json")
	require.NoError(t, err)
	require.Equal(t, "peer", list[0].Name)
	require.Equal(t, "1", list[1].Env["DEFAULT_NUM_PARTITIONS"])

	_, err = loadTargets("platform,targets/platform.json")
	require.ErrorContains(t, err, `duplicate target "platform"`)
	_, err = loadTargets("other")
	require.ErrorContains(t, err, "use one of peer-p1, peer, platform-p1, platform-secure, platform-traced-tenth, platform-traced, platform-unaudited, platform")
}
