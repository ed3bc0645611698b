package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"slices"
	"strings"
	"time"
)

// pageSteps are the steps of the page by default: each kind of work at sizes that differ by
// orders of magnitude, so that costs that do not grow linearly are visible.
const pageSteps = "echo/1,echo/64,echo/64@1,echo/64@64,steps:1/8,steps:10/8,steps:100/8,steps:1000/8," +
	"payload:1024/16,payload:65536/16,payload:1048576/4,counter:1/64,counter:1000/64,counter:100000/64," +
	"send:5000/64,fanout:10/16,waiting:1000/64,waiting:100000/64"

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// page is the data of the page of costs.
type page struct {
	Date    string
	Targets []string
	Rounds  int
	Charts  []chart
}

// chart compares the targets by one metric. All bars are in relation to the first target of
// their step, since the costs of steps differ by orders of magnitude.
type chart struct {
	Title string
	Rows  []chartRow
}

type chartRow struct {
	Step string
	Bars []bar
}

// bar is a metric of one target.
type bar struct {
	Target int     // index, which gives the color
	Width  float64 // in percent of the longest bar of the row
	Value  string
	Ratio  string // first target ÷ this one, median of the rounds; empty for the first
}

// pageMetrics are the metrics that the page shows, by their titles in the table.
var pageMetrics = []string{"server µs/op", "op/s", "p50 ms", "written KiB/op", "RSS MB"}

// writePage writes the medians of all rounds as an HTML page.
func writePage(path string, targets []string, results []result) error {
	p := page{Date: time.Now().UTC().Format(time.DateOnly), Targets: targets}
	for _, r := range results {
		p.Rounds = max(p.Rounds, r.Round)
	}
	for _, m := range metrics {
		if slices.Contains(pageMetrics, m.title) {
			p.Charts = append(p.Charts, newChart(m, targets, results))
		}
	}
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, p); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

func newChart(m metric, targets []string, results []result) chart {
	c := chart{Title: m.title}
	for _, name := range stepNames(results) {
		row, most := chartRow{Step: name}, 0.0
		of := func(target string) []float64 {
			return values(slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.Step != name || r.Target != target }), m)
		}
		first := of(targets[0])
		for i, target := range targets {
			list := of(target)
			if len(list) == 0 {
				continue
			}
			b := bar{Target: i, Width: median(list), Value: strings.TrimSpace(fmt.Sprintf(m.format, median(list)))}
			if q := ratios(first, list); i > 0 && len(q) > 0 {
				b.Ratio = fmt.Sprintf("×%.2f", median(q))
			}
			most = max(most, b.Width)
			row.Bars = append(row.Bars, b)
		}
		for i := range row.Bars {
			row.Bars[i].Width *= 100 / max(most, 1e-9)
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}
