package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

func TestQueryShowsAcknowledgedWrites(t *testing.T) {
	begin := time.Now()
	o := queriedObject{sent: 4, acks: []acknowledged{{1, begin.Add(-maxStaleness - 7*time.Second)}, {2, begin.Add(-maxStaleness - time.Second)}, {3, begin.Add(-time.Second)}}}
	require.Equal(t, 2, o.minVisible(begin))
	require.Equal(t, 1, o.minVisible(begin.Add(-2*time.Second)))
	require.Equal(t, 0, o.minVisible(begin.Add(-8*time.Second)))
	require.Equal(t, 3, o.minVisible(begin.Add(time.Minute)))

	for rows, wrong := range map[string]string{
		``: "query returned 0 for k-1, want 2 to 4",
		`{"service_key": "k-0", "value_utf8": "2"}`:   "query returned 2 for k-0, want 0 to 0",
		`{"service_key": "k-1", "value_utf8": "1"}`:   "query returned 1 for k-1, want 2 to 4",
		`{"service_key": "k-1", "value_utf8": "2"}`:   "",
		`{"service_key": "k-1", "value_utf8": "4"}`:   "",
		`{"service_key": "k-1", "value_utf8": "5"}`:   "query returned 5 for k-1, want 2 to 4",
		`{"service_key": "k-1", "value_utf8": "two"}`: "value of k-1",
	} {
		a := &querier{name: "k"}
		a.objects[1] = o
		resp := harness.Response{Status: 200, Body: []byte(`{"rows": [` + rows + `]}`)}
		if err := a.compare(resp, begin); wrong == "" {
			require.NoError(t, err, rows)
		} else {
			require.ErrorContains(t, err, wrong, rows)
		}
	}

	a := &querier{name: "k"}
	a.objects[1] = queriedObject{sent: 1, acks: o.acks, uncertain: true}
	require.NoError(t, a.compare(harness.Response{Status: 200, Body: []byte(`{"rows": []}`)}, begin), "the value is uncertain")
}
