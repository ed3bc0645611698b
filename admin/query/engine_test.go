package query

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"platform/internal/ids"
	"platform/metadata"
	"platform/partition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is partitions that hold what a test gave them, in one page each.
type memory struct {
	count  uint32
	scoped bool
	rows   map[partition.Table][]partition.Row
	asked  []partition.Scan
	scan   func(ctx context.Context) error // called first
}

func (m *memory) Count() uint32 { return max(m.count, 1) }
func (m *memory) Scoped() bool  { return m.scoped }

func (m *memory) Scan(ctx context.Context, id uint32, s *partition.Scan) (partition.Page, error) {
	if m.scan != nil {
		if err := m.scan(ctx); err != nil {
			return partition.Page{}, err
		}
	}
	m.asked = append(m.asked, *s)
	var page partition.Page
	for _, r := range m.rows[s.Table] {
		if !s.ID.IsZero() && s.ID != rowID(&r) {
			continue
		}
		page.Rows = append(page.Rows, r)
		page.Read++
	}
	return page, nil
}

func rowID(r *partition.Row) ids.Invocation {
	if r.Record.Invocation != nil {
		return r.Record.ID
	}
	return r.ID
}

func newTestEngine(t testing.TB, cfg Config) *Engine {
	if cfg.Partitions == nil {
		cfg.Partitions = &memory{}
	}
	if cfg.Registry == nil {
		cfg.Registry = func() *metadata.Schemas { return &metadata.Schemas{} }
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Hour // the process may be stopped for longer than the default
	}
	e := NewEngine(cfg)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// ask returns the rows of a query.
func ask(t testing.TB, e *Engine, text string) []map[string]any {
	t.Helper()
	var buf bytes.Buffer
	_, err := e.WriteJSON(t.Context(), text, Options{}, &buf)
	require.NoError(t, err, text)
	var answer struct{ Rows []map[string]any }
	dec := json.NewDecoder(&buf)
	dec.UseNumber()
	require.NoError(t, dec.Decode(&answer))
	return answer.Rows
}

func TestEveryTableCanBeRead(t *testing.T) {
	e := newTestEngine(t, Config{})
	require.Equal(t, []map[string]any{{"n": json.Number("0")}}, ask(t, e, "select count(*) as n from sys_invocation"))

	for _, tab := range e.Tables() {
		name := tab.Schema + "." + tab.Name
		ask(t, e, "select * from "+name)
	}
}

func TestColumnsAreReturnedOnRequest(t *testing.T) {
	for text, want := range map[string]string{
		"select id, scope, created_at, 1 + 1 as two from sys_invocation": `{"columns":[{"name":"id","type":"text"},{"name":"scope","type":"text"},{"name":"created_at","type":"timestamp"},{"name":"two"}],"rows":[]}`,
		"select null as none, 'x' as \"a \"\"b\"\"\"":                    `{"columns":[{"name":"none"},{"name":"a \"b\""}],"rows":[{"a \"b\"":"x"}]}`,
	} {
		var buf bytes.Buffer
		_, err := newTestEngine(t, Config{}).WriteJSON(t.Context(), text, Options{Columns: true}, &buf)
		require.NoError(t, err)
		require.JSONEq(t, want, buf.String())
	}
}

func TestStrongConsistencyReachesThePartitions(t *testing.T) {
	for _, strong := range []bool{false, true} {
		p := &memory{}
		_, err := newTestEngine(t, Config{Partitions: p}).WriteJSON(t.Context(), "select id from sys_invocation", Options{Strong: strong}, io.Discard)
		require.NoError(t, err)
		require.Len(t, p.asked, 1)
		require.Equal(t, strong, p.asked[0].Strong)
	}
}

// toText is a value of a result as text.
func toText(v any) string {
	switch v := v.(type) {
	case json.Number:
		return v.String()
	case string:
		return v
	}
	return fmt.Sprint(v)
}

// Queries of nothing but the number of a row use no column, like those that count rows.
func TestRowsOfEveryTableAreNumbered(t *testing.T) {
	e := newTestEngine(t, owned(t, func(string, string) bool { return true }))
	for _, table := range e.Tables() {
		name := table.Schema + "." + table.Name
		total := ask(t, e, "select count(*) as n from "+name)[0]["n"]
		for _, text := range []string{"select count(distinct rowid) as n from " + name, "select count(*) as n from (select rowid from " + name + " order by rowid)"} {
			require.Equal(t, total, ask(t, e, text)[0]["n"], text)
		}
	}
}
