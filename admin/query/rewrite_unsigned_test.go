package query

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/machine"
)

// TestPartitionKeysAreUnsigned compares and sorts partition keys in the upper half of 64 bits.
func TestPartitionKeysAreUnsigned(t *testing.T) {
	m := &memory{rows: map[partition.Table][]partition.Row{}}
	for _, key := range []uint64{1 << 63, 5, 1<<64 - 1, 1<<63 - 1} {
		inv := &machine.Invocation{ID: ids.NewInvocation(key, [16]byte{}), Status: machine.Completed, Target: machine.Target{Service: "S", Handler: "h"}}
		m.rows[partition.Invocations] = append(m.rows[partition.Invocations], partition.Row{Record: partition.Record{Invocation: inv}})
	}
	e := newTestEngine(t, Config{Partitions: m})
	const from = "select partition_key as k from sys_invocation_status "
	const a, b, c, d = "5", "9223372036854775807", "9223372036854775808", "18446744073709551615"
	for query, want := range map[string]string{
		from + "order by partition_key":                                                                                          a + " " + b + " " + c + " " + d,
		from + "order by target, sys_invocation_status.partition_key desc limit 2":                                               d + " " + c,
		from + "where partition_key >= " + c + " order by partition_key":                                                         c + " " + d,
		from + "where partition_key > '" + c + "'":                                                                               d,
		from + "where " + c + " > partition_key order by partition_key":                                                          a + " " + b,
		from + "where partition_key between 6 and " + c + " and 1 = 1 order by k":                                                b + " " + c,
		from + "where partition_key not between 6 and " + d + "":                                                                 a,
		from + "where partition_key > -1 and partition_key < 5.5":                                                                a,
		from + "where partition_key < 2 + 4":                                                                                     a,
		from + "where 1 + 4 < partition_key and partition_key < " + c:                                                            b,
		from + "where partition_key <= (select max(partition_key) from sys_invocation_status) order by partition_key limit 1":    a,
		"select max(partition_key) as k from sys_invocation_status":                                                              d,
		"select min(s.partition_key) as k from sys_invocation_status s where s.partition_key <> 5":                               b,
		"select max(partition_key) filter (where partition_key < " + d + ") as k from sys_invocation_status":                     c,
		"select max(partition_key) over (order by partition_key) as k from sys_invocation_status order by partition_key limit 3": a + " " + b + " " + c,
		"select x.partition_key as k from sys_invocation_status x join sys_invocation_status y on x.partition_key > y.partition_key group by x.partition_key having count(*) = 3": d,
		from + "order by k desc limit 1": d,
		from + "order by 1":              a + " " + b + " " + c + " " + d,
		"select k from (select partition_key as k from sys_invocation_status) where k > " + b + " order by k":                                                                               c + " " + d,
		"select max(k) as k from (select partition_key as k from sys_invocation_status)":                                                                                                    d,
		"select 1 as k from (select target as x from sys_invocation_status limit 1), (select partition_key as x from sys_invocation_status limit 1) as o where o.x >= -9223372036854775808": "1",
		"select 1 as k where 'b' > (select max(x) from (select 'a' as x)) and 4 = (select count(x) from (select partition_key as x from sys_invocation_status))":                            "1",
		"select 1 as k where 7 < (select max(partition_key) from sys_invocation_status) and ((select max(partition_key) from sys_invocation_status)) > 7":                                   "1",
		"select max(partition_key) as k from sys_invocation_status group by partition_key order by 1 desc":                                                                                  d + " " + c + " " + b + " " + a,
		"select max(distinct partition_key) as k from sys_invocation_status":                                                                                                                d,
		"select partition_key as k from sys_invocation_status group by partition_key having max(partition_key) > " + c:                                                                      d,
		"select partition_key as k from sys_invocation_status group by partition_key order by max(partition_key) desc":                                                                      d + " " + c + " " + b + " " + a,
		"select max(partition_key) filter (where partition_key < 9) as k from sys_invocation_status having max(partition_key) > 9":                                                          a,
		from + "where 9223372036854775809 between partition_key and " + d + " order by partition_key":                                                                                       a + " " + b + " " + c,
		from + "where 9223372036854775809 not between 1 and partition_key order by partition_key":                                                                                           a + " " + b + " " + c,
		from + "where 5 between 1 and partition_key and partition_key > 5 and 1 = 1 order by partition_key":                                                                                 b + " " + c + " " + d,
		from + "where (partition_key) > " + c:                                                                     d,
		from + "where (partition_key, id) > (" + c + ", 'z') order by partition_key":                              d,
		from + "where ('', 9223372036854775809) < (target, partition_key) and target > '' order by partition_key": a + " " + b + " " + c + " " + d,
		from + "where (" + c + ", 'z') > (partition_key, id) order by partition_key":                              a + " " + b + " " + c,
		from + "where partition_key in (select 5 as x union select " + c + ") order by partition_key desc":        c + " " + a,
		"select x.partition_key as k from sys_invocation_status x left join sys_invocation_status y on y.partition_key > x.partition_key group by x.partition_key having max(y.partition_key) is null": d,
		from + "where partition_key < (select max(partition_key) from sys_invocation_status where 1 = 2)":                                                                                              "",
		"select 1 as k where 7 < 18446744073709551615":                                          "1",
		"with w as (select 9223372036854775808 as x) " + from + ", w where partition_key = w.x": c,
	} {
		var got []string
		for _, row := range ask(t, e, query) {
			got = append(got, fmt.Sprint(row["k"]))
		}
		assert.Equal(t, want, strings.Join(got, " "), query)
	}
	for _, incomplete := range []string{"<", "between", "between 1", "between 1 and", "> (", ") > 1", "not", "order by", "filter", "::"} {
		_, err := e.WriteJSON(t.Context(), from+"where partition_key "+incomplete, Options{}, io.Discard)
		require.Error(t, err, incomplete)
		_, err = e.WriteJSON(t.Context(), from+"where 1 < max(distinct partition_key) "+incomplete, Options{}, io.Discard)
		require.Error(t, err, incomplete)
	}
	require.Contains(t, rewrittenText(t, e, "select * from partitions order by start_key"), "order by "+orderFunction+" ( start_key )")
	require.Contains(t, ask(t, e, "select partition_key < 5, 1 from sys_invocation_status order by 1")[0], "partition_key < 5")
	require.Contains(t, ask(t, e, "select max(partition_key) from sys_invocation_status")[0], "max(partition_key)")
}
