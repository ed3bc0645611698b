package sdk

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// theme is a list of related cases.
type theme struct {
	name     string
	feature  string // that a language must offer, "" if none
	protocol int    // least version that has it
	cases    []testCase
}

// themes run in parallel: their cases use separate services, keys and records.
var themes = []theme{
	{name: "echo", cases: echoCases},
	{name: "steps", cases: stepCases},
	{name: "calls", cases: callCases},
	{name: "state", cases: stateCases},
	{name: "ingress", cases: ingressCases},
	{name: "utils", cases: utilCases},
	{name: "failures", cases: failureCases},
	{name: "exhaust-time", feature: "exhaust-time", cases: exhaustTimeCases},
	{name: "step-retry-delay", feature: "step-retry-delay", cases: retryDelayCases},
	{name: "metadata", feature: "metadata", protocol: 6, cases: metadataCases},
	{name: "retry-policy", feature: "retry-policy", cases: retryPolicyCases},
	{name: "history", feature: "retry-policy", cases: historyCases},
	{name: "awakeables", cases: awakeableCases},
	{name: "workflows", cases: flowCases},
	{name: "promise-conflict", feature: "promise-conflict", cases: promiseConflictCases},
	{name: "signals", feature: "signals", cases: signalCases},
	{name: "attach", feature: "attach", cases: attachCases},
	{name: "get-output", feature: "get-output", cases: outputCases},
	{name: "cancel", cases: cancelCases},
	{name: "cancel-by-handler", feature: "cancel", cases: cancelByHandlerCases},
	{name: "explicit-cancellation", feature: "explicit-cancellation", cases: explicitCases},
	{name: "kill", cases: killCases},
	{name: "drift", cases: driftCases},
	{name: "mismatch-behavior", feature: "mismatch-behavior", protocol: 7, cases: mismatchCases},
	{name: "pause-error", feature: "pause-error", protocol: 7, cases: pauseErrorCases},
	{name: "combinators", cases: combinatorCases},
	{name: "combinator-any", feature: "combinator-any", cases: anyCases},
	{name: "combinator-all", feature: "combinator-all", cases: allCases},
	{name: "nested-combinators", feature: "nested-combinators", cases: nestedCases},
	{name: "operator", cases: operatorCases},
	{name: "state-update", cases: updateCases},
	{name: "restart-from-prefix", protocol: 6, cases: prefixCases},
	{name: "events", cases: eventCases},
}

// sequentialThemes run sequentially, since they kill shared processes.
var sequentialThemes = []theme{
	{name: "crash", cases: crashCases},
	{name: "upgrade", cases: upgradeCases}, // the last: new work goes to the new version
}

func TestServicesOfEverySDK(t *testing.T) {
	langs := available(t)
	for _, v := range selectedVariations(t) {
		t.Run(v.name, func(t *testing.T) { runVariation(t, v, langs) })
	}
}

// suite is one server with the services of all languages.
type suite struct {
	variation variation
	langs     []language
	names     []string // of langs
	server    *harness.Server
	services  map[string]*harness.Service
	recorder  *harness.Recorder
	matrix    *matrix
}

// runVariation starts one server with the services of all languages and runs every case
// for each of them.
func runVariation(t *testing.T, v variation, langs []language) {
	if v.prepare != nil {
		v.prepare(t, &v)
	}
	s := &suite{variation: v, services: map[string]*harness.Service{}, recorder: harness.RecorderFor(t), matrix: newMatrix()}
	s.server = harness.ServerFor(t, v.server)
	for _, l := range langs {
		if !l.hasFeature(v.feature) {
			s.matrix.exclude(l.name, v.name, l.lacks[v.feature])
			continue
		}
		s.langs = append(s.langs, l)
		s.names = append(s.names, l.name)
		service := l.start(t, s.recorder, v.service)
		s.services[l.name] = service
		require.NoError(t, s.server.Register(t.Context(), s.address(t, service), v.http11))
	}
	if len(s.langs) == 0 {
		t.Logf("no language offers %s:\n%s", v.feature, s.matrix)
		return
	}
	t.Run("together", func(t *testing.T) { s.run(t, themes, true) })
	t.Run("alone", func(t *testing.T) { s.run(t, sequentialThemes, false) })
	t.Logf("%s:\n%s", v.name, s.matrix)
}

// address returns the address of the service for the server.
func (s *suite) address(t *testing.T, service *harness.Service) string {
	if s.variation.protocol == 5 {
		return olderProtocolProxy(t, service.URI(), 5)
	}
	return service.URI()
}

// run runs the applicable themes for every language.
func (s *suite) run(t *testing.T, themes []theme, parallel bool) {
	v := s.variation
	for _, th := range themes {
		if v.themes != nil && !slices.Contains(v.themes, th.name) || th.protocol > v.version() {
			continue
		}
		for _, l := range s.langs {
			if !l.hasFeature(th.feature) {
				s.matrix.exclude(l.name, th.name, l.lacks[th.feature])
				continue
			}
			if th.protocol > l.protocolVersion(v) {
				s.matrix.exclude(l.name, th.name, fmt.Sprintf("knows no protocol after %d", l.protocol))
				continue
			}
			for _, c := range th.cases {
				t.Run(l.name+"/"+th.name+"/"+c.name, func(t *testing.T) {
					if parallel {
						t.Parallel()
					}
					s.matrix.record(t, l.name, th.name)
					c.run(&env{
						T: t, suite: s, lang: l.name, langs: s.names,
						server: s.server, service: s.services[l.name], recorder: s.recorder,
					})
				})
			}
		}
	}
}
