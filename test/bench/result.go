package main

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// result is the result of one step, as written to the results file.
type result struct {
	Round      int     `json:"round"`
	Target     string  `json:"target"`
	Step       string  `json:"step"`
	Operations int64   `json:"operations"`
	Seconds    float64 `json:"seconds"`
	Rate       float64 `json:"rate"`                 // operations per second
	P50        float64 `json:"p50_ms"`               // latency; for sleeps, delay of the wake-up
	P99        float64 `json:"p99_ms"`               //
	ServerCPU  float64 `json:"server_cpu_us"`        // per operation
	ServiceCPU float64 `json:"service_cpu_us"`       // per operation
	Memory     float64 `json:"rss_mb"`               // resident memory of the server at the end
	Written    float64 `json:"written_kib"`          // to files, per operation
	Use        float64 `json:"use,omitempty"`        // rate divided by that of slots that are always in use
	Direct     float64 `json:"direct,omitempty"`     // rate divided by that of direct calls of the endpoint
	GapP50     float64 `json:"gap_p50_ms,omitempty"` // between two holds of a slot
	GapP99     float64 `json:"gap_p99_ms,omitempty"`
	// Amplification is the number of bytes written per byte of request and response.
	Amplification float64 `json:"amplification,omitempty"`
	Note          string  `json:"note,omitempty"`
}

// newResult computes the result of an outcome with at least one operation.
func newResult(s step, o outcome) result {
	times := o.latencies
	if s.counter == "sleep" {
		times = o.executed.Late
	}
	operations := float64(len(o.latencies))
	r := result{
		Step:       s.String(),
		Operations: int64(len(o.latencies)),
		Seconds:    o.elapsed.Seconds(),
		Rate:       operations / o.elapsed.Seconds(),
		P50:        milliseconds(quantile(times, 0.50)),
		P99:        milliseconds(quantile(times, 0.99)),
		ServerCPU:  microseconds(o.usage.server.cpu) / operations,
		ServiceCPU: microseconds(o.usage.service.cpu) / operations,
		Memory:     float64(o.usage.server.rss) / (1 << 20),
	}
	r.Written = float64(o.usage.server.written) / (1 << 10) / operations
	if s.payload {
		r.Amplification = r.Written * (1 << 10) / float64(2*s.size)
	}
	if ideal := s.idealRate(); ideal > 0 {
		r.Use = r.Rate / ideal
		r.GapP50 = milliseconds(quantile(o.executed.Gaps, 0.50))
		r.GapP99 = milliseconds(quantile(o.executed.Gaps, 0.99))
	}
	return r
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// metric is a column of the table.
type metric struct {
	title  string
	format string
	of     func(result) float64
}

// cell right-aligns a text of the column, at least 7 wide.
func (m metric) cell(text string) string {
	return fmt.Sprintf("%*s", max(utf8.RuneCountInString(m.title), 7), text)
}

var metrics = []metric{
	{"op/s", "%.0f", func(r result) float64 { return r.Rate }},
	{"p50 ms", "%.2f", func(r result) float64 { return r.P50 }},
	{"p99 ms", "%.2f", func(r result) float64 { return r.P99 }},
	{"server µs/op", "%.0f", func(r result) float64 { return r.ServerCPU }},
	{"service µs/op", "%.0f", func(r result) float64 { return r.ServiceCPU }},
	{"written KiB/op", "%.1f", func(r result) float64 { return r.Written }},
	{"RSS MB", "%.0f", func(r result) float64 { return r.Memory }},
}
