package listing

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
)

const benchRows = 1_000_000

// benchInvocation returns one of many invocations: ten handlers, one failure in fifty.
func benchInvocation(n int, random *rand.Rand) *machine.Invocation {
	var unique [16]byte
	binary.BigEndian.PutUint64(unique[:], random.Uint64())
	binary.BigEndian.PutUint64(unique[8:], uint64(n))
	inv := &machine.Invocation{
		ID: ids.NewInvocation(random.Uint64(), unique), Status: machine.Completed,
		Target:    machine.Target{Service: fmt.Sprint("Service", n%5), Handler: fmt.Sprint("handler", n%2), Key: fmt.Sprint("key", n%100_000), Type: target.ObjectExclusive},
		CreatedAt: 1_700_000_000_000 + int64(n), ModifiedAt: 1_700_000_000_500 + int64(n), CompletedAt: 1_700_000_000_500 + int64(n),
		Result: &journal.Result{Value: []byte("result")},
	}
	if n%50 == 0 {
		inv.Result = &journal.Result{Failure: &journal.Failure{Code: 500, Message: fmt.Sprint("order ", n, " failed in step ", n%7)}}
	}
	return inv
}

func benchIndex(b *testing.B, rows int) *Index {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	x := New(1 << 30)
	for n := range rows {
		x.Put(benchInvocation(n, random))
	}
	return x
}

func BenchmarkPut(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	invs := make([]*machine.Invocation, 100_000)
	for n := range invs {
		invs[n] = benchInvocation(n, random)
	}
	x := New(1 << 30)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		x.Put(invs[n%len(invs)])
	}
}

func BenchmarkMillion(b *testing.B) {
	x := benchIndex(b, benchRows)
	b.Logf("%d rows, %.1f bytes each", x.Len(), float64(x.Bytes())/float64(x.Len()))
	for name, f := range map[string]Filter{
		"all":     {},
		"failed":  {Results: []Result{Failure}},
		"service": {Services: []string{"Service3"}, Statuses: []Status{Completed}},
		"key":     {Keys: []string{"key77"}},
		"none":    {Services: []string{"unknown"}},
	} {
		b.Run("top/"+name, func(b *testing.B) {
			for b.Loop() {
				top := NewTop(Order{}, nil, 51)
				x.Select(&f, top, nil)
				top.Places()
			}
		})
		b.Run("count/"+name, func(b *testing.B) {
			for b.Loop() {
				var t Tally
				x.Count(&f, &t, nil, nil)
			}
		})
	}
	b.Run("failures", func(b *testing.B) {
		for b.Loop() {
			var g Groups
			x.Failures(&Filter{}, &g, nil, nil)
		}
	})
}

func BenchmarkNormalise(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		normalise("dial tcp 127.0.0.1:9080: connect: connection refused after 3 attempts of order 12345", "k1")
	}
}
