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
	askedKeys = 8 // objects of an asker, which lie in several partitions
	// seenIn is when a query has to show what was acknowledged. Right after a change of
	// leaders the old one may answer a query for a moment longer.
	seenIn = 2 * time.Second
)

// asker changes objects in several partitions and asks for all of them with SQL.
type asker struct {
	*client
	name string
	turn int

	objects [askedKeys]asked
	wrong   []error
}

// asked is one object, whose value grows.
type asked struct {
	tried int // latest value that was sent
	acks  []ack
	left  bool // a change has no answer, and may yet happen: the object is left alone
}

// ack is an acknowledged value.
type ack struct {
	value int
	at    time.Time
}

// least is the value that a query begun at a time has to show.
func (a *asked) least(begin time.Time) int {
	n, _ := slices.BinarySearchFunc(a.acks, begin.Add(-seenIn), func(k ack, t time.Time) int { return k.at.Compare(t) })
	if n == 0 {
		return 0
	}
	return a.acks[n-1].value
}

func (a *asker) step(ctx context.Context) {
	a.turn++
	i := a.turn % askedKeys
	if object := &a.objects[i]; !object.left {
		object.tried++
		body, _ := json.Marshal(history.Change{Value: object.tried}) // a number only
		_, err := a.insist(ctx, "change", call(harness.Path("Register", a.key(i), "change"), body, fmt.Sprintf("%s-%d", a.name, a.turn)))
		if object.left = err != nil; err == nil {
			object.acks = append(object.acks, ack{object.tried, time.Now()})
		}
	}
	if err := a.ask(ctx); err != nil {
		a.wrong = append(a.wrong, err)
	}
}

func (a *asker) key(n int) string { return fmt.Sprintf("%s-%d", a.name, n) }

// ask asks for all objects. That a query fails is in the tally.
func (a *asker) ask(ctx context.Context) error {
	keys := make([]string, askedKeys)
	for i := range keys {
		keys[i] = "'" + a.key(i) + "'"
	}
	begin := time.Now()
	answer, err := a.once(ctx, "query", query(
		"SELECT service_key, value_utf8 FROM state WHERE service_name = 'Register' AND service_key IN ("+strings.Join(keys, ", ")+")"))
	if err != nil {
		return nil //nolint:nilerr // it is in the tally
	}
	return a.compare(answer, begin)
}

// compare says what the answer of a query shows that is not as it was acknowledged when
// the query began.
func (a *asker) compare(answer harness.Response, begin time.Time) error {
	var result struct {
		Rows []struct {
			Key   string `json:"service_key"`
			Value string `json:"value_utf8"`
		} `json:"rows"`
	}
	if err := answer.Decode(&result); err != nil {
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
		if got := shown[a.key(i)]; !o.left && (got < o.least(begin) || got > o.tried) {
			return fmt.Errorf("a query shows %d for %s, not %d to %d", got, a.key(i), o.least(begin), o.tried)
		}
	}
	return nil
}

// check returns what queries have shown that is wrong.
func (a *asker) check(context.Context, *client) error {
	if len(a.wrong) > 0 {
		return fmt.Errorf("%d queries, first: %w", len(a.wrong), a.wrong[0])
	}
	return nil
}

// query asks the admin API with SQL.
func query(sql string) request {
	return func(ctx context.Context, c *harness.Client) (harness.Response, error) { return c.Query(ctx, sql) }
}
