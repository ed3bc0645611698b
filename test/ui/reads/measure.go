package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"platform/test/harness"
)

// read is a request of a page.
type read struct {
	what   string // what the page shows
	path   string // of a GET request
	times  []time.Duration
	length int // of the last body, after compression
}

// first is the read that -limit applies to.
const first = "/invocations?limit=100"

// measure repeats all reads in turn and prints their latencies.
func measure(ctx context.Context, s *harness.Server, o options) error {
	c := &reader{base: s.Admin()}
	var begin time.Time
	err := retry(ctx, func() error { // partitions have no leader before their elections
		begin = time.Now()
		_, err := c.read(ctx, first, nil)
		return err
	})
	if err != nil {
		return err
	}
	log.Printf("first read: %s", time.Since(begin).Round(time.Millisecond))
	reads, err := c.pages(ctx)
	if err != nil {
		return err
	}
	total, err := c.total(ctx)
	if err != nil {
		return err
	}
	calling, stopCalls := context.WithCancel(ctx)
	defer stopCalls()
	var calls errgroup.Group
	for range o.busy {
		calls.Go(func() error {
			for i := 0; calling.Err() == nil; i++ {
				if err := invoke(calling, s.Client, 0); err != nil && calling.Err() == nil {
					return err
				}
			}
			return nil
		})
	}
	rounds := 0
	for end := time.Now().Add(o.duration); rounds == 0 || time.Now().Before(end); rounds++ {
		for _, r := range reads {
			begin := time.Now()
			if r.length, err = c.read(ctx, r.path, nil); err != nil {
				return err
			}
			if rounds > 0 { // the first round fills caches
				r.times = append(r.times, time.Since(begin))
			}
		}
	}
	stopCalls()
	if err := calls.Wait(); err != nil {
		return err
	}
	log.Printf("%d invocations, %d rounds, %d concurrent calls meanwhile", total, rounds-1, o.busy)
	return report(reads, o.limit)
}

func report(reads []*read, limit time.Duration) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "p50 ms\tp95 ms\tmax ms\tbytes\tread\tpath")
	for _, r := range reads {
		slices.Sort(r.times)
		fmt.Fprintf(w, "%.1f\t%.1f\t%.1f\t%d\t%s\t%s\n", millis(r.quantile(0.5)), millis(r.quantile(0.95)), millis(r.quantile(1)), r.length, r.what, r.path)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if p95 := reads[0].quantile(0.95); p95 > limit {
		return fmt.Errorf("the p95 of the first page of invocations is %s, above %s", p95, limit)
	}
	return nil
}

// quantile returns the q-quantile of the sorted times, 0 if there are none.
func (r *read) quantile(q float64) time.Duration {
	if len(r.times) == 0 {
		return 0
	}
	return r.times[max(int(math.Ceil(q*float64(len(r.times)))), 1)-1]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// reader reads the admin API as a browser does.
type reader struct{ base string }

// read reads a path, decodes the body into v unless v is nil, and returns the length of the
// transferred body.
func (c *reader) read(ctx context.Context, path string, v any) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return 0, err
	}
	if v == nil {
		request.Header.Set("Accept-Encoding", "gzip") // keeps the transport from decompressing
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, fmt.Errorf("GET %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("GET %s: status %s, %.300q", path, response.Status, body)
	}
	if v == nil {
		return len(body), nil
	}
	if err := json.Unmarshal(body, v); err != nil {
		return 0, fmt.Errorf("GET %s: %w", path, err)
	}
	return len(body), nil
}

// retry repeats f until it succeeds.
func retry(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

func (c *reader) total(ctx context.Context) (int, error) {
	var counts struct {
		Total    int  `json:"total"`
		Complete bool `json:"complete"`
	}
	if _, err := c.read(ctx, "/invocations/counts", &counts); err != nil {
		return 0, err
	}
	if !counts.Complete {
		return 0, fmt.Errorf("the counts are incomplete: %d", counts.Total)
	}
	return counts.Total, nil
}

type page struct {
	Invocations []struct {
		ID string `json:"id"`
	} `json:"invocations"`
	Next string `json:"next_cursor"`
}

// invocation waits for an invocation that matches a filter.
func (c *reader) invocation(ctx context.Context, filter string) (string, error) {
	var path string
	err := retry(ctx, func() error {
		var p page
		if _, err := c.read(ctx, "/invocations?limit=1&"+filter, &p); err != nil {
			return err
		}
		if len(p.Invocations) == 0 {
			return fmt.Errorf("no invocation with %s", filter)
		}
		path = "/invocations/" + p.Invocations[0].ID
		return nil
	})
	return path, err
}

// cursor returns the cursor after some pages of 100.
func (c *reader) cursor(ctx context.Context, pages int) (string, error) {
	var cursor string
	for range pages {
		var p page
		if _, err := c.read(ctx, first+"&cursor="+url.QueryEscape(cursor), &p); err != nil {
			return "", err
		}
		cursor = p.Next
	}
	return url.QueryEscape(cursor), nil
}

// pages returns the reads of all pages.
func (c *reader) pages(ctx context.Context) ([]*read, error) {
	vars := []string{}
	add := func(name, value string, err error) error {
		vars = append(vars, name, value)
		return err
	}
	for name, filter := range map[string]string{"{completed}": "status=completed&handler=echo", "{suspended}": "status=suspended", "{flaky}": "handler=flaky", "{held}": "status=pending"} {
		path, err := c.invocation(ctx, filter)
		if err := add(name, path, err); err != nil {
			return nil, err
		}
	}
	second, err := c.cursor(ctx, 1)
	if err := add("{second}", second, err); err != nil {
		return nil, err
	}
	later, err := c.cursor(ctx, 30)
	if err := add("{later}", later, err); err != nil {
		return nil, err
	}
	var groups struct {
		Groups []struct {
			ID string `json:"id"`
		} `json:"groups"`
	}
	if _, err := c.read(ctx, "/failures", &groups); err != nil {
		return nil, err
	}
	if len(groups.Groups) == 0 {
		return nil, fmt.Errorf("no failure group")
	}
	var deployments struct {
		Deployments []struct {
			ID string `json:"id"`
		} `json:"deployments"`
	}
	if _, err := c.read(ctx, "/deployments", &deployments); err != nil {
		return nil, err
	}
	vars = append(vars, "{group}", groups.Groups[0].ID, "{deployment}", deployments.Deployments[0].ID,
		"{hour}", fmt.Sprint(time.Now().Add(-time.Hour).UnixMilli()))
	replacer := strings.NewReplacer(vars...)
	var list []*read
	for line := range strings.Lines(strings.TrimSpace(allReads)) {
		what, path, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			return nil, fmt.Errorf("a read without a path: %q", line)
		}
		list = append(list, &read{what: what, path: replacer.Replace(strings.TrimSpace(path))})
	}
	return list, nil
}
