package query

import (
	"fmt"
	"strings"
	"testing"

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
		from + "where partition_key between 6 and " + c + " and 1 = 1 order by k":                                                c + " " + b, // k is a result, and sorted as it is stored
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
		"select 1 as k where 7 < 18446744073709551615":                                          "1",
		"with w as (select 9223372036854775808 as x) " + from + ", w where partition_key = w.x": c,
	} {
		var got []string
		for _, row := range ask(t, e, query) {
			got = append(got, fmt.Sprint(row["k"]))
		}
		require.Equal(t, want, strings.Join(got, " "), query)
	}
	require.Contains(t, rewrittenText(t, e, "select * from partitions order by start_key"), "order by "+orderFunction+" ( start_key )")
	require.Contains(t, ask(t, e, "select max(partition_key) from sys_invocation_status")[0], "max(partition_key)")
}
