package query

import (
	"cmp"
	"fmt"
	"io"
	"slices"
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

// Queries give the same with partition keys of all 64 bits as with small numbers in another column.
func TestPartitionKeysBehaveLikeSmallNumbers(t *testing.T) {
	keys := []uint64{5, 1<<63 - 1, 1 << 63, 1<<63 + 7, 1<<64 - 1}
	numbers := []uint32{11, 13, 17, 19, 23}
	large := map[string]string{}
	for i, n := range numbers {
		large[fmt.Sprint(n)] = fmt.Sprint(keys[i])
	}
	m := &memory{rows: map[partition.Table][]partition.Row{}}
	for n, i := range []int{2, 0, 4, 1, 3, 2, 4} {
		inv := &machine.Invocation{
			ID: ids.NewInvocation(keys[i], [16]byte{byte(n)}), Status: machine.Completed, Length: numbers[i],
			Target: machine.Target{Service: fmt.Sprint("S", n%2), Handler: "h"},
		}
		m.rows[partition.Invocations] = append(m.rows[partition.Invocations], partition.Row{Record: partition.Record{Invocation: inv}})
	}
	e := newTestEngine(t, Config{Partitions: m})
	// rows returns the cells of each row, sorted.
	rows := func(query string, translated map[string]string) (all [][]string) {
		for _, row := range ask(t, e, query) {
			var cells []string
			for _, value := range row {
				cell := fmt.Sprint(value)
				cells = append(cells, cmp.Or(translated[cell], cell))
			}
			slices.Sort(cells)
			all = append(all, cells)
		}
		return all
	}
	for _, query := range strings.Split(strings.TrimSpace(queriesOfKeys), "\n") {
		for a := range numbers {
			for b := range numbers {
				if a > 0 && !strings.Contains(query, "$a") || b != a && !strings.Contains(query, "$b") {
					continue
				}
				with := func(column string, a, b any) string {
					return strings.NewReplacer("K", column, "T", "sys_invocation_status", "$a", fmt.Sprint(a), "$b", fmt.Sprint(b)).Replace(query)
				}
				want := rows(with("journal_size", numbers[a], numbers[b]), large)
				assert.Equal(t, want, rows(with("partition_key", keys[a], keys[b]), nil), with("partition_key", keys[a], keys[b]))
			}
		}
	}
}

// queriesOfKeys has a query on each line, with K for the column, T for the table, and $a and $b for values.
const queriesOfKeys = `
select K as k from T order by K, id
select K k from T order by k, id
select K from T order by K desc, id
select distinct K as k from T order by k
select distinct K from T order by 1 desc
select K, count(*) as n from T group by K order by K
select K as k, count(*) as n from T group by k order by k desc
select K as k, count(*) as n from T group by 1 order by 1
select K as k, count(*) as n from T group by K having K > $a order by k
select K as k, count(*) as n from T group by K having count(*) > 1 and K >= $a order by n, k
select K as k from T where K > $a and K < $b order by K, id
select K as k from T where K >= $a or K <= $b order by K, id
select K as k from T where not K > $a order by K, id
select K as k from T where not (K > $a) order by K, id
select K as k from T where K <> $a order by K, id
select K as k from T where K != $a order by K, id
select K as k from T where K in ($a, $b) order by K, id
select K as k from T where K not in ($a, $b) order by K, id
select K as k from T where K between $a and $b order by K, id
select K as k from T where K not between $a and $b order by K, id
select K as k from T where $a = K order by id
select K as k from T where $a < K order by K, id
select K as k from T where $a >= K order by K, id
select K as k from T where $a between K and $b order by K, id
select K as k from T where (K, id) > ($a, '') order by K, id
select K as k from T where (target, K) > ('', $a) order by K, id
select K as k from T where K > $a and K < $b or K = $a order by K, id
select case when K > $a then 1 else 0 end as c, K as k from T order by K, id
select case when K between $a and $b then 1 else 0 end as c, K as k from T order by K, id
select case K when $a then 1 else 0 end as c, K as k from T order by K, id
select max(K) as k from T
select min(K) as k from T
select max(K) as k, min(K) as l, count(*) as n from T
select max(K), min(K) from T
select target, max(K) as k from T group by target order by k
select target, max(K) as k from T group by target order by max(K) desc
select target, max(K) as k from T group by target having max(K) > $a order by target
select target, min(K) as k from T group by target having min(K) <= $a order by target
select nullif(K, $a) as k from T order by K, id
with w as (select K as x from T) select x from w where x > $a order by x
with w as (select K as x from T) select max(x) as m from w
with w as (select K from T) select K from w where K > $a order by K
with w(x) as (select K from T) select x from w where x > $a order by x
with w(x, y) as (select K, id from T) select x from w order by x desc, y
select x from (select K as x from T) where x > $a order by x
select x from (select K x from T) where x > $a order by x
select q.x from (select K as x from T) q where q.x > $a order by q.x
select q.x from (select K as x from T) as q where q.x between $a and $b order by q.x
select "K" as k from T where "K" > $a order by "K", id
select t."K" as k from T t where t."K" > $a order by t."K", id
select a.K as k from T a join T b on a.K = b.K order by a.K, a.id, b.id
select a.K as k, b.K as l from T a join T b on a.K < b.K order by a.K, b.K, a.id, b.id
select a.K as k from T a where exists (select 1 from T b where b.K > a.K) order by a.K, a.id
select a.K as k from T a where a.K > (select min(b.K) from T b) order by a.K, a.id
select a.K as k from T a where a.K = (select max(b.K) from T b) order by a.id
select a.K as k from T a where a.K in (select b.K from T b where b.K >= $a) order by a.K, a.id
select a.K as k from T a where (select max(b.K) from T b) > a.K order by a.K, a.id
select * from (select K as k from T union select K from T) order by k
select k from (select K as k from T union select K from T) where k > $a order by k
select K as k from T union select K from T order by k
select K from T union select K from T order by K desc limit 2
select a.K from T a union select b.K from T b order by a.K
select id, K as k from T union all select id, K from T order by 2 desc, 1, id
select id, K from T where K > $a union select id, K from T order by K, id limit 3 offset 1
select K as k from T except select K from T where K > $a order by k desc nulls last
select K as k from T intersect select K from T where K >= $a order by 1
select k from (select K as k from T union all select K from T order by k desc limit 3) order by k
select k from (select K as k from T union all select K from T order by 1 limit 3) order by 1 desc
select (select K from T union select K from T order by K desc limit 1) as m, id from T order by id
with w as (select K as x from T) select x from w union select x from w where x > $a order by x desc
with w as (select K as x from T union select K from T order by x limit 2) select x from w order by x
select k from (select K as k, id from T order by 1, 2 limit 2) order by k desc
select max(K) as k from T union select min(K) from T order by k
select K as k, K > $a as c from T union select K, K < $a from T order by k, c
select row_number() over (order by K, id) as n, K as k from T order by K, id
select rank() over (order by K) as n, K as k from T order by K, id
select rank() over (partition by target order by K) as n, K as k from T order by K, id
select lag(K) over (order by K, id) as p, K as k from T order by K, id
select first_value(K) over (order by K) as p from T order by id
select last_value(K) over (order by K rows between unbounded preceding and unbounded following) as p from T order by id
select first_value(K order by K) as p from T
select last_value(K order by K) as p from T
select max(K) over (partition by target) as p from T order by id
select max(K) over w as p from T window w as (partition by target) order by id
select K as k from T order by target, K desc, id limit 3
select K as k from T order by K desc nulls last, id limit 3
select K as k from T order by K asc nulls first, id limit 3 offset 1
select K as k from T where K > $a order by K limit 2
select K as k from T where K >= $a and id <> 'x' order by K, id limit 2
select K as k from T where K > $a or (K = $a and id > 'x') order by K, id limit 2
select count(*) as n from T where K > $a
select count(*) filter (where K > $a) as n from T
select sum(case when K > $a then 1 else 0 end) as n from T
select count(distinct K) as n from T where K < $a
select K > $a as c from T order by K, id
select K > $a as c, K as k from T order by c, k, id
select (K > $a) = (K < $b) as c, K as k from T order by K, id
select K as k from T where K is not null and K > $a order by K, id
select K as k from T where K is $a order by K, id
select K as k from T where K is distinct from $a order by K, id
select K as k from T where K > $a and target like '%' order by K, id
select K as k from T where target > '' and K > $a and target < 'z' order by K, id
select K as k from T where (K > $a and K < $b) or (K >= $b and K <= $a) order by K, id
select K as k from T where K > $a = true order by K, id
select K as k from T where cast(K as bigint) = $a order by id
select K as k from T where K::bigint = $a order by id
select K as k from T where K > '$a' order by K, id
select K as k from T where K = '$a' order by K, id
select K as k from T where K in ('$a', '$b') order by K, id
select K as k from T where K between '$a' and '$b' order by K, id
select k from (select K as k from T) where k = $a
select k from (select K as k from T) where k in ($a, $b) order by k
select k from (select K as k from T) where k > '$a' order by k
select K as k from T t where t.K > $a order by t.K, t.id
select K as k from public.T where public.T.K > $a order by K, id
select a.K as k from T a, T b where a.id = b.id and a.K > $a and b.K < $b order by a.K, a.id
select a.K as k from T a left join T b on a.id = b.id and b.K > $a where b.id is null order by a.K, a.id
select a.K as k from T a join T b using (id) where a.K > $a order by a.K, a.id
select K as k from T order by K > $a, K, id
select K as k from T order by case when K > $a then 0 else 1 end, K, id
select K as k from T order by (K), id
select K as k from T order by -1 * 1, K, id
select K as k from T where K > $a + 0 order by K, id
select K as k from T where (select $a) < K order by K, id
select K as k from T where K > (select $a) order by K, id
select min(k) as m from (select max(K) as k from T group by target)
select max(k) as m from (select min(K) as k from T group by target)
select k from (select max(K) as k from T group by target) order by k
with a as (select K as x from T), b as (select x as y from a) select y from b where y > $a order by y
with a as (select max(K) as x from T) select T.K as k from T, a where T.K < a.x order by T.K, id
select o.k from (select i.x as k from (select K as x from T) i) o where o.k > $a order by o.k
select K as id2, id from T where K > $a order by id2, id
select K as target2 from T where K > $a group by target2 order by target2
select t.* from (select K from T where K > $a) t order by K
select K as k from T where K > $a and K > $b order by K desc, id
select K as k from T where K >= $a and ($b > K or K = $b) order by K, id
select iif(K > $a, 1, 0) as c from T order by K, id
select K as "the key" from T where K > $a order by "the key"
select K as k from T where 1=1 and (1=1 and (K > $a)) order by K, id
select K as k from T where K > $a limit 100
select abs(1) as one, K as k from T where K>$a order by K,id
select K as k from T where K>=$a AND K<=$b ORDER BY K,id
select sum(n) as s from (select count(*) as n, K from T group by K order by K)
select K as k, row_number() over (partition by K order by id) as n from T order by K, n
select K as k, sum(count(*)) over (order by K) as n from T group by K order by K
`
