package partition

import (
	"context"
	"errors"
	"runtime"

	"platform/partition/codec"
	"platform/partition/machine"
	"platform/partition/store"
)

// Lists that no index covers, and the census, read the records of a partition in pages of up to recordPageRows records and about
// recordPageBytes, each from a view of its own: a view that stayed open until the last page
// would keep everything that is deleted meanwhile.
const (
	recordPageRows  = 1024
	recordPageBytes = 1 << 20
)

// eachPage calls read for the beginning of each page until it returns that there is no further one.
func eachPage(ctx context.Context, read func(from store.Place) (next store.Place, err error)) error {
	for from := store.Place(nil); ; {
		next, err := read(from)
		if err != nil || next == nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		from = next
		runtime.Gosched()
	}
}

// readPage calls visit for the stored invocations of one page, with completed ones if wanted. It
// returns where the next page begins, nil if there is none.
func readPage(tables *store.Partition, from store.Place, completed bool, visit func(*machine.Invocation)) (next store.Place, err error) {
	view := tables.View()
	defer func() { err = errors.Join(err, view.Close()) }()
	rows, size := 0, 0
	err = view.WalkRecords(from, nil, store.Statuses{Live: true, Completed: completed}, func(at store.Place, record []byte) (store.Visit, error) {
		inv, err := codec.DecodeInvocation(record)
		if err != nil {
			return store.Visit{}, err
		}
		visit(inv)
		rows++
		size += len(record)
		if rows >= recordPageRows || size >= recordPageBytes {
			next = at.Next()
		}
		return store.Visit{Stop: next != nil}, nil
	})
	return next, err
}
