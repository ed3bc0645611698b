package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPageComparesTargets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	results := []result{
		{Round: 1, Target: "a", Step: "echo/1", Rate: 300, ServerCPU: 100},
		{Round: 1, Target: "b", Step: "echo/1", Rate: 200, ServerCPU: 400},
		{Round: 1, Target: "a", Step: "<steps>", Rate: 5},
	}
	require.NoError(t, writePage(file, []string{"a", "b"}, results))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), `<td class="value">400</td><td class="ratio">×0.25</td>`)
	require.Contains(t, string(text), `<div class="bar t0" style="width:25.0%">`)
	require.Contains(t, string(text), `&lt;steps&gt;`)
	_, err = parseSteps(pageSteps)
	require.NoError(t, err)
}
