package main

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	restate "github.com/restatedev/sdk-go"

	"platform/test/history"
)

// largeRetention is how long the result of a large call remains. It is short, since tests require that its space is
// reclaimed.
const largeRetention = time.Minute

// store is an object with a large value. Its entries are the IDs of the values that it has received.
func store(retry restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewObject("Store", retry, restate.WithJournalRetention(0)).
		Handler("put", restate.NewObjectHandler(putValue, restate.WithBinary, restate.WithIdempotencyRetention(largeRetention))).
		Handler("entries", restate.NewObjectHandler(readEntries)).
		Handler("clear", restate.NewObjectHandler(clearValue))
}

// putValue checks its input, a large result of a step, and the previous value, and returns a large result.
func putValue(ctx restate.ObjectContext, input []byte) ([]byte, error) {
	in, err := history.ParseBlob(input)
	if err != nil {
		return nil, corrupt(err)
	}
	made, err := restate.Run(ctx, func(restate.RunContext) ([]byte, error) {
		return history.Blob{ID: in.ID + "/step", Size: in.Step}.Bytes(), nil
	}, restate.WithBinary)
	if err != nil {
		return nil, err
	}
	if b, err := history.ParseBlob(made); err != nil || b.ID != in.ID+"/step" {
		return nil, corrupt(cmp.Or(err, fmt.Errorf("corrupt: the step of %s returned %s", in.ID, b.ID)))
	}
	last, err := restate.Get[[]byte](ctx, "value", restate.WithBinary)
	if err != nil {
		return nil, err
	}
	if last != nil {
		if _, err := history.ParseBlob(last); err != nil {
			return nil, corrupt(err)
		}
	}
	restate.Set(ctx, "value", history.Blob{ID: in.ID + "/value", Size: in.Value}.Bytes(), restate.WithBinary)
	n, err := appendEntry(ctx, history.Entry{ID: in.ID})
	if err != nil {
		return nil, err
	}
	return history.Blob{ID: in.ID + "/result", Size: in.Result, Seq: n}.Bytes(), nil
}

// corrupt is an error that ends the invocation and is not repeated by clients.
func corrupt(err error) error {
	return restate.ToTerminalError(err, restate.WithErrorCode(http.StatusUnprocessableEntity))
}

// clearValue removes the value and the entries, and returns their number.
func clearValue(ctx restate.ObjectContext, _ restate.Void) (string, error) {
	n, err := restate.Get[int](ctx, "n")
	restate.ClearAll(ctx)
	return strconv.Itoa(n), err
}
