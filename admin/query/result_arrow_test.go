package query

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestArrowResultsOfAnySize compares what is written with the JSON of the same rows: the texts
// must all occur, in a stream that consists of whole messages and has an end mark.
func TestArrowResultsOfAnySize(t *testing.T) {
	e := newTestEngine(t, Config{})
	for rows, batches := range map[int]int{0: 0, 1: 1, 30_000: 6} {
		query := fmt.Sprintf("with recursive n(i) as (select 1 union all select i + 1 from n) select i, 'row ' || i as t, null as x, i / 2.0 as f from n limit %d", rows)
		var buf bytes.Buffer
		written, err := e.WriteArrow(t.Context(), query, Options{}, &buf)
		require.NoError(t, err)
		require.Equal(t, rows, written.Rows)
		require.Equal(t, buf.Len(), written.Bytes)
		require.Contains(t, buf.String(), "\x00\x00\x00\x00")
		if rows > 0 {
			require.Contains(t, buf.String(), fmt.Sprintf("row %d", rows))
		}
		require.True(t, bytes.HasSuffix(buf.Bytes(), []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}))
		messages := bytes.Count(buf.Bytes(), []byte{0xff, 0xff, 0xff, 0xff}) - 2 // without the schema and the end
		require.GreaterOrEqual(t, messages, batches)
		require.NotZero(t, binary.LittleEndian.Uint32(buf.Bytes()[4:]))
	}
}

func TestArrowResultsAreBounded(t *testing.T) {
	e := newTestEngine(t, Config{MaxBytes: 1000})
	var buf bytes.Buffer
	_, err := e.WriteArrow(t.Context(), "select printf('%.*c', 2000, 'a') as v", Options{}, &buf)
	require.ErrorContains(t, err, "max-bytes")
	require.Zero(t, buf.Len())

	_, err = e.WriteArrow(t.Context(), "select nothing", Options{}, &buf)
	require.Error(t, err)
	require.Zero(t, buf.Len())
}

// A value that does not fit the type of its column, which was sent with the first rows, must not be cut off.
func TestArrowColumnsOfSeveralTypes(t *testing.T) {
	e := newTestEngine(t, Config{})
	for last, rejected := range map[string]bool{"2.5": true, "'a'": true, "2.0": false, "null": false} {
		query := "with recursive n(i) as (select 1 union all select i + 1 from n) select case when i = 30000 then " + last + " else i end as mixed from n limit 30000"
		var buf bytes.Buffer
		_, err := e.WriteArrow(t.Context(), query, Options{}, &buf)
		if !rejected {
			require.NoError(t, err, last)
			continue
		}
		require.ErrorContains(t, err, "the column mixed has values of different types", last)
		require.False(t, bytes.HasSuffix(buf.Bytes(), []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}))
	}
}

func TestArrowTypesOfComputedColumns(t *testing.T) {
	a := &arrowResult{pending: [][]any{
		{nil, int64(1), int64(1), 1.5, []byte("a"), int64(1)},
		{nil, nil, 2.5, nil, nil, []byte("b")},
	}}
	var got []string
	for i := range a.pending[0] {
		got = append(got, fmt.Sprint(a.inferred(i)))
	}
	require.Equal(t, []string{"0", "1", "4", "4", "0", "0"}, got) // Text, Int64, Float64, Float64, Text, Text
}
