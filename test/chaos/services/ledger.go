package main

import (
	"strconv"

	restate "github.com/restatedev/sdk-go"

	"platform/test/history"
)

// ledger is an object that only grows: an entry per add, at the position that the
// add returns.
func ledger(retry restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewObject("Ledger", retry).
		Handler("add", restate.NewObjectHandler(addEntry)).
		Handler("stamp", restate.NewObjectHandler(stampEntry)).
		Handler("relay", restate.NewObjectHandler(relay)).
		Handler("entries", restate.NewObjectHandler(entries))
}

func addEntry(ctx restate.ObjectContext, id string) (int, error) {
	return add(ctx, history.Entry{ID: id})
}

// stampEntry is for those that must not come too early: the entry says when it came.
func stampEntry(ctx restate.ObjectContext, id string) (int, error) {
	at, err := now(ctx)
	if err != nil {
		return 0, err
	}
	return add(ctx, history.Entry{ID: id, At: at})
}

func add(ctx restate.ObjectContext, e history.Entry) (int, error) {
	n, err := restate.Get[int](ctx, "n")
	if err != nil {
		return 0, err
	}
	next := n + 1
	if sabotaged("once") {
		restate.Set(ctx, strconv.Itoa(next), e)
		next++
	}
	restate.Set(ctx, "n", next)
	restate.Set(ctx, strconv.Itoa(n), e)
	return n, nil
}

// relay adds an entry here, one by a call to a second ledger and one by a send to
// a third.
func relay(ctx restate.ObjectContext, in history.Relay) (int, error) {
	n, err := addEntry(ctx, in.ID)
	if err != nil {
		return 0, err
	}
	restate.ObjectSend(ctx, "Ledger", in.Send, "add").Send(in.ID)
	if _, err := restate.Object[int](ctx, "Ledger", in.Call, "add").Request(in.ID); err != nil {
		return 0, err
	}
	return n, nil
}

// entries returns all entries, behind whatever was queued before it.
func entries(ctx restate.ObjectContext, _ restate.Void) ([]history.Entry, error) {
	n, err := restate.Get[int](ctx, "n")
	if err != nil {
		return nil, err
	}
	all := make([]history.Entry, n)
	for i := range all {
		if all[i], err = restate.Get[history.Entry](ctx, strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	return all, nil
}
