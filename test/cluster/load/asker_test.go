package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

func TestAQueryHasToShowWhatWasAcknowledgedForAWhile(t *testing.T) {
	begin := time.Now()
	o := asked{tried: 4, acks: []ack{{1, begin.Add(-9 * time.Second)}, {2, begin.Add(-3 * time.Second)}, {3, begin.Add(-time.Second)}}}
	require.Equal(t, 2, o.least(begin))
	require.Equal(t, 1, o.least(begin.Add(-2*time.Second)))
	require.Equal(t, 0, o.least(begin.Add(-8*time.Second)))
	require.Equal(t, 3, o.least(begin.Add(time.Minute)))

	for rows, wrong := range map[string]string{
		``: "a query shows 0 for k-1, not 2 to 4",
		`{"service_key": "k-0", "value_utf8": "2"}`:   "a query shows 2 for k-0, not 0 to 0",
		`{"service_key": "k-1", "value_utf8": "1"}`:   "a query shows 1 for k-1, not 2 to 4",
		`{"service_key": "k-1", "value_utf8": "2"}`:   "",
		`{"service_key": "k-1", "value_utf8": "4"}`:   "",
		`{"service_key": "k-1", "value_utf8": "5"}`:   "a query shows 5 for k-1, not 2 to 4",
		`{"service_key": "k-1", "value_utf8": "two"}`: "value of k-1",
	} {
		a := &asker{name: "k"}
		a.objects[1] = o
		answer := harness.Response{Status: 200, Body: []byte(`{"rows": [` + rows + `]}`)}
		if err := a.compare(answer, begin); wrong == "" {
			require.NoError(t, err, rows)
		} else {
			require.ErrorContains(t, err, wrong, rows)
		}
	}

	a := &asker{name: "k"}
	a.objects[1] = asked{tried: 1, acks: o.acks, left: true}
	require.NoError(t, a.compare(harness.Response{Status: 200, Body: []byte(`{"rows": []}`)}, begin), "nothing is known of it")
}
