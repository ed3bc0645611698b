package load

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"platform/test/harness"
	"platform/test/history"
)

const (
	queriedKeys = 8 // objects of a querier, on several partitions
	// maxStaleness is the time after which a query must show an acknowledged write. After a
	// change of leaders, the former leader may answer queries until its lease ends, which it
	// may notice late on a busy machine.
	maxStaleness = 5 * time.Second
)

// querier changes objects on several partitions and queries all of them with SQL.
type querier struct {
	*client
	name       string
	operations int

	objects    [queriedKeys]queriedObject
	violations []error
}

// queriedObject is an object with an increasing value.
type queriedObject struct {
	sent      int // latest value sent
	acks      []acknowledged
	uncertain bool // a change got no response and may still happen; the object is no longer used
}

// acknowledged is an acknowledged value.
type acknowledged struct {
	value int
	at    time.Time
}

// minVisible returns the lowest value that a query starting at begin may show.
func (a *queriedObject) minVisible(begin time.Time) int {
	n, _ := slices.BinarySearchFunc(a.acks, begin.Add(-maxStaleness), func(k acknowledged, t time.Time) int { return k.at.Compare(t) })
	if n == 0 {
		return 0
	}
	return a.acks[n-1].value
}

func (a *querier) step(ctx context.Context) {
	a.operations++
	i := a.operations % queriedKeys
	if object := &a.objects[i]; !object.uncertain {
		object.sent++
		body, _ := json.Marshal(history.Change{Value: object.sent}) // cannot fail
		_, err := a.retry(ctx, "change", call(harness.Path("Register", a.key(i), "change"), body, fmt.Sprintf("%s-%d", a.name, a.operations)))
		if object.uncertain = err != nil; err == nil {
			object.acks = append(object.acks, acknowledged{object.sent, time.Now()})
		}
	}
	if err := a.queryAll(ctx); err != nil {
		a.violations = append(a.violations, err)
	}
}

func (a *querier) key(n int) string { return fmt.Sprintf("%s-%d", a.name, n) }

// queryAll queries all objects and compares the result. A failed query is counted in counts.
func (a *querier) queryAll(ctx context.Context) error {
	keys := make([]string, queriedKeys)
	for i := range keys {
		keys[i] = "'" + a.key(i) + "'"
	}
	begin := time.Now()
	resp, err := a.try(ctx, "query", sqlQuery(
		"SELECT service_key, value_utf8 FROM state WHERE service_name = 'Register' AND service_key IN ("+strings.Join(keys, ", ")+")"))
	if err != nil {
		return nil //nolint:nilerr // counted in counts
	}
	return a.compare(resp, begin)
}

// compare returns an error if the response of a query that started at begin misses
// acknowledged values.
func (a *querier) compare(resp harness.Response, begin time.Time) error {
	var result struct {
		Rows []struct {
			Key   string `json:"service_key"`
			Value string `json:"value_utf8"`
		} `json:"rows"`
	}
	if err := resp.Decode(&result); err != nil {
		return err
	}
	shown := map[string]int{}
	for _, row := range result.Rows {
		value, err := strconv.Atoi(row.Value)
		if err != nil {
			return fmt.Errorf("value of %s: %w", row.Key, err)
		}
		shown[row.Key] = value
	}
	for i := range a.objects {
		o := &a.objects[i]
		if got := shown[a.key(i)]; !o.uncertain && (got < o.minVisible(begin) || got > o.sent) {
			return fmt.Errorf("query returned %d for %s, want %d to %d", got, a.key(i), o.minVisible(begin), o.sent)
		}
	}
	return nil
}

// check returns the violations that queries found.
func (a *querier) check(context.Context, *client) error {
	if len(a.violations) > 0 {
		return fmt.Errorf("%d queries, first: %w", len(a.violations), a.violations[0])
	}
	return nil
}

// sqlQuery is a SQL query through the admin API.
func sqlQuery(sql string) request {
	return func(ctx context.Context, c *harness.Client) (harness.Response, error) { return c.Query(ctx, sql) }
}
