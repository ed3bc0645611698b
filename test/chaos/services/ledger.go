package main

import (
	"strconv"

	restate "github.com/restatedev/sdk-go"

	"platform/test/history"
)

// ledger is an append-only object. An addition returns the position of its entry.
func ledger(retry restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewObject("Ledger", retry).
		Handler("add", restate.NewObjectHandler(addEntry)).
		Handler("stamp", restate.NewObjectHandler(addStampedEntry)).
		Handler("relay", restate.NewObjectHandler(relayEntry)).
		Handler("entries", restate.NewObjectHandler(readEntries))
}

func addEntry(ctx restate.ObjectContext, id string) (int, error) {
	return appendEntry(ctx, history.Entry{ID: id})
}

// addStampedEntry adds an entry with the current time, for checks of delays.
func addStampedEntry(ctx restate.ObjectContext, id string) (int, error) {
	at, err := now(ctx)
	if err != nil {
		return 0, err
	}
	return appendEntry(ctx, history.Entry{ID: id, At: at})
}

func appendEntry(ctx restate.ObjectContext, e history.Entry) (int, error) {
	n, err := restate.Get[int](ctx, "n")
	if err != nil {
		return 0, err
	}
	next := n + 1
	if hasDefect("append-twice") {
		restate.Set(ctx, strconv.Itoa(next), e)
		next++
	}
	restate.Set(ctx, "n", next)
	restate.Set(ctx, strconv.Itoa(n), e)
	return n, nil
}

// relayEntry adds an entry here, one by a call to a second ledger and one by a send to
// a third.
func relayEntry(ctx restate.ObjectContext, in history.Relay) (int, error) {
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

// readEntries returns all entries; it is queued behind earlier additions.
func readEntries(ctx restate.ObjectContext, _ restate.Void) ([]history.Entry, error) {
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
