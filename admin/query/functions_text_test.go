package query

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTextFunctionsAgreeWithSQLite compares the functions that replace SQLite's with those.
func TestTextFunctionsAgreeWithSQLite(t *testing.T) {
	require.NoError(t, configure()) // before the first use of SQLite
	original, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	defer original.Close()
	original.SetMaxOpenConns(1)
	_, err = original.Exec("PRAGMA case_sensitive_like = ON")
	require.NoError(t, err)
	e := newTestEngine(t, Config{})

	short := rapid.StringOfN(rapid.SampledFrom([]rune(`abAB%_*?[]^-\é 1`)), 0, 6, -1)
	text := func(rt *rapid.T, name string) string { return quoteText(short.Draw(rt, name)) }
	forms := []func(rt *rapid.T) string{
		func(rt *rapid.T) string { return "instr(" + text(rt, "x") + "," + text(rt, "y") + ")" },
		func(rt *rapid.T) string {
			return "replace(" + text(rt, "x") + "," + text(rt, "y") + "," + text(rt, "z") + ")"
		},
		func(rt *rapid.T) string { return "trim(" + text(rt, "x") + "," + text(rt, "y") + ")" },
		func(rt *rapid.T) string { return "ltrim(" + text(rt, "x") + "," + text(rt, "y") + ")" },
		func(rt *rapid.T) string { return "rtrim(" + text(rt, "x") + "," + text(rt, "y") + ")" },
		func(rt *rapid.T) string { return text(rt, "x") + " LIKE " + text(rt, "y") },
		func(rt *rapid.T) string { return text(rt, "x") + " LIKE " + text(rt, "y") + ` ESCAPE '\'` },
		func(rt *rapid.T) string { return text(rt, "x") + " NOT LIKE " + text(rt, "y") + ` ESCAPE '%'` },
		func(rt *rapid.T) string { return text(rt, "x") + " GLOB " + text(rt, "y") },
	}
	for _, form := range forms {
		rapid.Check(t, func(rt *rapid.T) {
			query := "select +(" + form(rt) + ") as v"
			var want string
			require.NoError(rt, original.QueryRow(query).Scan(&want), query)
			require.Equal(rt, want, toText(ask(t, e, query)[0]["v"]), query)
		})
	}
	for _, expression := range []string{
		"instr(x'00010203', x'0203')", "instr(12345, 34)", "instr(1.0, '.0')", "instr(1e300, 'e')", "instr('a', '')", "trim(10.50, '0')",
		"1 like '1%'", "2.0 like '2._'", "x'6162' like 'A%'", "'é' like '_'", "instr('éa', 'a')", "NULL like 'a'", "'a' glob NULL",
		"trim('  a ')", "ltrim('  a ')", "'a%' like 'a|%' escape '|'", "'a' like 'a|' escape '|'", "'[' glob '['", "']' glob '[]]'",
		"'-' glob '[a-]'", "'b' glob '[^]a-c]'", "'b' glob '[a-'", "replace('aaa', 'a', '')", "replace('a', '', 'b')", "replace(11, 1, 2)",
	} {
		query := "select quote(" + expression + ") as v"
		var want string
		require.NoError(t, original.QueryRow(query).Scan(&want), query)
		require.Equal(t, want, toText(ask(t, e, query)[0]["v"]), query)
	}
}

func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// hostileQueries compute within a single function call, which SQLite cannot interrupt. Each
// took minutes with its own functions.
var hostileQueries = []string{
	"select instr(printf('%.*c', 3000000, 'a'), printf('%.*c', 1500000, 'a') || 'b')",
	"select replace(printf('%.*c', 3000000, 'a'), printf('%.*c', 1500000, 'a') || 'b', '')",
	"select printf('%.*c', 3000000, 'a') like '%' || printf('%.*c', 990, 'a') || 'b%'",
	"select printf('%.*c', 3000000, 'a') glob '*' || printf('%.*c', 490, '[a-c]') || 'd*'",
	"select rtrim(printf('%.*c', 3000000, 'a'), printf('%.*c', 3000000, 'b') || 'a')",
	"select regexp_like(printf('%.*c', 3000000, 'a'), '(a?){500}(a{0,500}){2}b')",
}

func TestAQueryEndsInTheMiddleOfAFunction(t *testing.T) {
	e := newTestEngine(t, Config{Timeout: 200 * time.Millisecond})
	for _, query := range hostileQueries {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := e.WriteJSON(ctx, query, Options{}, io.Discard)
		require.NoError(t, ctx.Err(), query) // the engine's own limit ended it, or it was fast
		if err != nil {
			require.ErrorIs(t, err, ErrTimeout, query)
		}
		cancel()
	}
}

func TestValuesAreBounded(t *testing.T) {
	e := newTestEngine(t, Config{})
	for _, query := range []string{
		"select length(printf('%.*c', 5000000, 'a')) as n",
		"select length(replace(printf('%.*c', 4000000, 'a'), 'a', printf('%.*c', 4000000, 'b'))) as n",
		"select 'a' like printf('%.*c', 1001, '%')",
	} {
		require.Regexp(t, "larger than|longer than", rejectionOf(t, e, query).Message, query)
	}
	require.Equal(t, "4000000", toText(ask(t, e, "select length(printf('%.*c', 4000000, 'a')) as n")[0]["n"]))
	require.Contains(t, rejectionOf(t, e, "select json_patch('{}', '{}')").Message, "json_patch")
}

// TestAResultThatIsNotReadReleasesItsSlot sends a query over a connection and never reads the result.
func TestAResultThatIsNotReadReleasesItsSlot(t *testing.T) {
	e := newTestEngine(t, Config{Timeout: 100 * time.Millisecond, Concurrent: 1, MaxRows: 1 << 30, MaxBytes: 1 << 40})
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := e.WriteJSON(r.Context(), "with recursive n(i) as (select 1 union all select i + 1 from n) select printf('%0100000d', i) as x from n",
			Options{}, responseDeadline{w, http.NewResponseController(w)})
		ended <- err
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(time.Minute):
		t.Fatal("the query still runs")
	}
	var buf bytes.Buffer
	require.Eventually(t, func() bool { // on a busy machine it may exceed the timeout
		buf.Reset()
		_, err = e.WriteJSON(t.Context(), "select 1 as n", Options{}, &buf)
		return err == nil
	}, time.Minute, time.Millisecond)
}

type responseDeadline struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (r responseDeadline) SetWriteDeadline(t time.Time) error { return r.control.SetWriteDeadline(t) }

// The memory of a query is limited, but not what Go allocates while it calculates a function: that must not be
// many times the value.
func TestFunctionsOfLargeValuesNeedLittleMemory(t *testing.T) {
	text := "[" + strings.Repeat("1,", maxValue/2) + "1]"
	for name, args := range map[string][]driver.Value{
		"array_contains": {text, int64(2)}, "array_length": {text}, "split_part": {text, ",", int64(-1)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := functions[name].call(nil, args)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*maxValue), name)
	}
}
