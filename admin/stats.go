package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/stats"
	"platform/internal/units"
)

// Defaults and limits of GET /stats.
const (
	defaultStatsRange    = time.Hour
	maxStatsRange        = stats.Step * stats.Steps
	defaultStatsSteps    = 360
	defaultStatsServices = 20
	maxStatsServices     = 50
	otherServices        = "(other)"
)

// statsView is a time series of the cluster.
type statsView struct {
	From     rest.Timestamp         `json:"from"`
	To       rest.Timestamp         `json:"to"`
	StepMS   int64                  `json:"step_ms"`
	Series   *seriesView            `json:"series"`
	Services map[string]*seriesView `json:"services"`
	Complete bool                   `json:"complete"`
	Nodes    []statsNodeView        `json:"nodes"`
}

type statsNodeView struct {
	ID     ids.Node `json:"id"`
	Name   string   `json:"name"`
	Reason string   `json:"reason,omitempty"`
}

// seriesView has one value per step; nil for steps without data.
type seriesView struct {
	Started   []*uint64  `json:"started"`
	Succeeded []*uint64  `json:"succeeded"`
	Failed    []*uint64  `json:"failed"`
	Cancelled []*uint64  `json:"cancelled"`
	Retries   []*uint64  `json:"retries"`
	InFlight  []*uint64  `json:"in_flight"`
	Backlog   []*uint64  `json:"backlog"`
	P50       []*float64 `json:"latency_p50_ms"`
	P99       []*float64 `json:"latency_p99_ms"`
}

func (s *Server) getStats(c echo.Context) error {
	cluster, _ := s.registry.Cluster()
	if err := feature.Require(cluster.Level(), feature.Level4, "showing statistics"); err != nil {
		return err
	}
	q, err := statsQuery(c, time.Now())
	if err != nil {
		return err
	}
	view := statsView{
		From: rest.Timestamp(q.From), To: rest.Timestamp(q.To), StepMS: q.Step, Services: map[string]*seriesView{}, Complete: true, Nodes: []statsNodeView{},
	}
	var results []stats.Result
	for _, n := range s.cluster.Stats(c.Request().Context(), q) {
		view.Nodes = append(view.Nodes, statsNodeView{n.ID, n.Name, n.Reason})
		view.Complete = view.Complete && n.Reason == ""
		if n.Reason == "" {
			results = append(results, n.Result)
		}
	}
	merged, steps := stats.Merge(results), int((q.To-q.From)/q.Step)
	total := merged.Total()
	view.Series = viewSeries(&total, &merged, steps)
	for i := range merged.Services {
		name := merged.Services[i].Service
		if name == stats.Other {
			name = otherServices
		}
		view.Services[name] = viewSeries(&merged.Services[i], &merged, steps)
	}
	return rest.Respond(c, http.StatusOK, view)
}

// viewSeries converts a series to the values of all steps.
func viewSeries(s *stats.Series, r *stats.Result, steps int) *seriesView {
	values := func(counts []uint64) []*uint64 {
		list := make([]*uint64, steps)
		for i := range counts {
			list[r.First+i] = &counts[i]
		}
		return list
	}
	view := &seriesView{
		Started: values(s.Started), Succeeded: values(s.Succeeded), Failed: values(s.Failed), Cancelled: values(s.Cancelled),
		Retries: values(s.Retries), InFlight: values(s.InFlight), Backlog: values(s.Backlog), P50: make([]*float64, steps), P99: make([]*float64, steps),
	}
	for i := range s.Latencies {
		view.P50[r.First+i], view.P99[r.First+i] = quantile(&s.Latencies[i], 0.5), quantile(&s.Latencies[i], 0.99)
	}
	return view
}

// quantile returns a quantile of latencies in milliseconds, with a resolution of 1 µs; nil without
// data.
func quantile(latencies *[stats.Buckets]uint64, share float64) *float64 {
	d, ok := stats.Quantile(latencies, share)
	if !ok {
		return nil
	}
	ms := float64(d.Microseconds()) / 1000
	return &ms
}

// statsQuery parses the query parameters. The last step is the last complete one before now.
func statsQuery(c echo.Context, now time.Time) (stats.Query, error) {
	q := stats.Query{Service: c.QueryParam("service"), Services: defaultStatsServices}
	length, err := statsDuration(c, "range", defaultStatsRange)
	if err != nil {
		return q, err
	}
	if length > maxStatsRange {
		return q, rest.BadRequest("The query parameter 'range' is invalid: %s is more than %s", units.FormatDuration(length), units.FormatDuration(maxStatsRange))
	}
	usual := (length + defaultStatsSteps*stats.Step - 1) / (defaultStatsSteps * stats.Step) * stats.Step
	step, err := statsDuration(c, "step", usual)
	if err != nil {
		return q, err
	}
	if step%stats.Step != 0 || step > length {
		return q, rest.BadRequest("The query parameter 'step' is invalid: %s is not a multiple of %s of up to the range", units.FormatDuration(step), units.FormatDuration(stats.Step))
	}
	if text := c.QueryParam("services"); text != "" {
		if q.Services, err = strconv.Atoi(text); err != nil || q.Services < 0 || q.Services > maxStatsServices {
			return q, rest.BadRequest("The query parameter 'services' is invalid: %q is not a number from 0 to %d", text, maxStatsServices)
		}
	}
	q.Step = step.Milliseconds()
	q.To = now.UnixMilli() / q.Step * q.Step
	q.From = q.To - length.Milliseconds()/q.Step*q.Step
	return q, nil
}

// statsDuration parses a duration of at least one step.
func statsDuration(c echo.Context, name string, fallback time.Duration) (time.Duration, error) {
	text := c.QueryParam(name)
	if text == "" {
		return fallback, nil
	}
	d, err := units.ParseDuration(text)
	if err == nil && d < stats.Step {
		err = fmt.Errorf("%q is less than %s", text, units.FormatDuration(stats.Step))
	}
	if err != nil {
		return 0, rest.BadRequest("The query parameter '%s' is invalid: %v", name, err)
	}
	return d, nil
}
