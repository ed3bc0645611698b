package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// writeTable prints for each step the medians of each target over all rounds, and the
// first target divided by each other one: the median of the ratios per round, so that a
// temporary slowdown of the machine has no effect. The last column of a ratio is the range
// of the op/s ratios.
func writeTable(out io.Writer, targets []string, results []result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "step\ttarget")
	for _, m := range metrics {
		fmt.Fprint(w, "\t", m.cell(m.title))
	}
	fmt.Fprintln(w)
	for _, name := range stepNames(results) {
		rows := map[string][]result{}
		for _, r := range results {
			if r.Step == name {
				rows[r.Target] = append(rows[r.Target], r)
			}
		}
		for _, target := range targets {
			if len(rows[target]) > 0 {
				fmt.Fprintf(w, "%s\t%s%s%s\n", name, target, medians(rows[target]), notes(rows[target]))
			}
		}
		for _, other := range targets[1:] {
			if a, b := rows[targets[0]], rows[other]; len(a) > 0 && len(b) > 0 {
				fmt.Fprintf(w, "%s\t%s ÷ %s%s\n", name, targets[0], other, quotients(a, b))
			}
		}
	}
	return w.Flush()
}

// stepNames returns the steps in the order of their first results.
func stepNames(results []result) []string {
	var names []string
	for _, r := range results {
		if !slices.Contains(names, r.Step) {
			names = append(names, r.Step)
		}
	}
	return names
}

func values(results []result, m metric) []float64 {
	list := make([]float64, len(results))
	for i, r := range results {
		list[i] = m.of(r)
	}
	return list
}

func medians(results []result) string {
	var cells strings.Builder
	for _, m := range metrics {
		cells.WriteString("\t" + m.cell(fmt.Sprintf(m.format, median(values(results, m)))))
	}
	return cells.String()
}

// quotients formats the median ratios of a and b per round.
func quotients(a, b []result) string {
	var cells strings.Builder
	for _, m := range metrics {
		text := ""
		if q := ratios(values(a, m), values(b, m)); len(q) > 0 {
			text = fmt.Sprintf("×%.2f", median(q))
		}
		cells.WriteString("\t" + m.cell(text))
	}
	if q := ratios(values(a, metrics[0]), values(b, metrics[0])); len(q) > 1 {
		low, high := minMax(q)
		fmt.Fprintf(&cells, "  op/s ×%.2f to ×%.2f", low, high)
	}
	return cells.String()
}

func notes(results []result) string {
	var list []string
	of := func(f func(result) float64) float64 { return median(values(results, metric{of: f})) }
	if results[0].Amplification > 0 {
		list = append(list, fmt.Sprintf("%.1f bytes written per byte of payload", of(func(r result) float64 { return r.Amplification })))
	}
	if results[0].Use > 0 {
		list = append(list, fmt.Sprintf("%.1f %% of the ideal rate, %.1f %% of direct calls, gaps p50 %.2f ms, p99 %.2f ms",
			100*of(func(r result) float64 { return r.Use }), 100*of(func(r result) float64 { return r.Direct }), of(func(r result) float64 { return r.GapP50 }), of(func(r result) float64 { return r.GapP99 })))
	}
	for _, r := range results {
		if r.Note != "" {
			list = append(list, r.Note)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "  " + strings.Join(list, "; ")
}
