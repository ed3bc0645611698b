package query

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// computed counts the rows of a query, and loses the time slice of the query at one of them.
type computed struct {
	rows   int
	losing int
}

func (c *computed) Columns([]string, []Type, []Notice) error { return nil }

func (c *computed) Row(Row) error {
	if c.rows++; c.rows == c.losing {
		time.Sleep(sliceTime + 1) // the time slice has ended before it continues
	}
	return nil
}

// A query that only computes, without reading tables, stops soon after its time slice, and continues
// with the next one.
func TestQueriesComputeInTimeSlices(t *testing.T) {
	const rows = 50_000
	synctest.Test(t, func(t *testing.T) {
		e := NewEngine(Config{})
		defer func() { require.NoError(t, e.Close()) }()
		others := cap(e.processors.free) - 1
		for range others {
			<-e.processors.free
		}
		c := &computed{losing: rows / 10}
		done := make(chan error, 1)
		go func() {
			_, err := e.query(t.Context(), `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 50000) SELECT x FROM c`, Options{}, c)
			done <- err
		}()
		synctest.Wait() // until it computes for too long
		<-e.processors.free
		synctest.Wait()
		time.Sleep(time.Second)
		require.GreaterOrEqual(t, c.rows, c.losing)
		require.Less(t, c.rows, 2*c.losing)
		e.processors.free <- struct{}{}
		require.NoError(t, <-done)
		require.Equal(t, rows, c.rows)
		require.Len(t, e.processors.free, 1, "the query has ended its last time slice")
	})
}

// A time slice that is over is passed to the query that waits longest, also while its holder does not
// check it.
func TestTimeSlicesArePassedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &processors{make(chan struct{}, 1)}
		p.free <- struct{}{}
		began := time.Now()
		first, err := p.begin(t.Context())
		require.NoError(t, err)
		var order []int
		for i := range 3 {
			go func() {
				s, err := p.begin(t.Context())
				if err == nil {
					order = append(order, i)
					time.Sleep(sliceTime / 2)
				}
				s.close()
			}()
			synctest.Wait()
		}
		require.NoError(t, first.check(t.Context()), "it is not over yet")
		time.Sleep(sliceTime + 1)
		require.NoError(t, first.check(t.Context()))
		require.Equal(t, []int{0, 1, 2}, order)
		require.Equal(t, sliceTime*5/2, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), sliceTime/2)
		defer cancel()
		last, err := p.begin(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		last.close()
		first.close()
		first.close()
		require.Len(t, p.free, 1)
	})
}
