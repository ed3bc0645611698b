package machine_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition/machine"
)

func TestOwnedInvocationsAreEqual(t *testing.T) {
	key := "i"
	for _, inv := range []machine.Invocation{{}, {
		ID: ids.NewInvocation(1, [16]byte{1}), Status: machine.Invoked, Attempt: 7,
		Target: machine.Target{Scope: "s", Service: "Counter", Key: "k", Handler: "add"}, IdempotencyKey: &key, LimitKey: "a/b",
		Source: machine.Source{CallerTarget: "Greeter/greet", Subscription: "sub"}, Trace: machine.Trace{Parent: "p", State: "t", Baggage: "b"},
		ServerVersion: "1.0", Pin: machine.Pin{Deployment: "dp_1", Protocol: 6}, LastPause: &machine.PauseRecord{By: "::1", Reason: "why"},
	}} {
		owned := inv.Owned()
		require.Equal(t, inv, *owned)
		if inv.LastPause != nil {
			require.NotSame(t, inv.LastPause, owned.LastPause)
		}
	}
}

// A field with another string must be added to Owned, unless it is nil while an invocation runs.
func TestFieldsWithStringsAreKnown(t *testing.T) {
	var found []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[machine.Invocation]()) {
		if hasText(f.Type) {
			found = append(found, f.Name)
		}
	}
	require.Equal(t, []string{"Target", "Source", "IdempotencyKey", "LimitKey", "Trace", "ServerVersion", "Pin", "Await", "LastPause", "Result", "Failure"}, found)
}

func hasText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String:
		return true
	case reflect.Pointer:
		return hasText(t.Elem())
	case reflect.Slice:
		return t.Elem() != reflect.TypeFor[machine.Sink]() && t.Elem().Kind() != reflect.Uint8 && t.Elem().Name() != "Future" && hasText(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasText(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
