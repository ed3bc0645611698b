package admin

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/admin/rest"
	"platform/internal/access"
	"platform/internal/ids"
	"platform/partition/listing"
)

var waitingInvocation = ids.NewInvocation(7, [16]byte{1})

// waiting is an invocation that waits for two awakeables, one of them twice.
func waiting() *Invocation {
	return &Invocation{
		ID: waitingInvocation.String(), Status: StatusSuspended, Target: "Payment/charge", TargetServiceName: "Payment", TargetHandlerName: "charge", TargetServiceType: "service",
		CreatedAt: 1000, ModifiedAt: 7000, AwaitingSince: 5000,
		AwaitingOn: &Await{Signals: []uint32{18, 3}, Names: []string{"approved"}, Nested: []*Await{{Signals: []uint32{17, 18}, Completions: []uint32{1}}}},
	}
}

func TestAwakeablesOfAnInvocation(t *testing.T) {
	list, err := AwakeablesOf(waiting())
	require.NoError(t, err)
	require.Len(t, list, 2)
	for n, a := range list {
		require.Equal(t, ids.Awakeable{Invocation: waitingInvocation, Signal: uint32(17 + n)}.String(), a.ID)
		require.Equal(t, rest.Timestamp(5000), a.WaitingSince)
	}
	list, err = AwakeablesOf(&Invocation{AwaitingOn: &Await{Completions: []uint32{17}}})
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestAwakeablesAreListed(t *testing.T) {
	w := seeded(t, nil)
	require.JSONEq(t, `{"awakeables":[]}`, text(t, w.ask(t, "GET", "/awakeables", "")))
	w.awakeables = AwakeablePage{Awakeables: []Awakeable{{ID: "sign_1", InvocationID: "inv_1", InvocationStatus: StatusSuspended, Target: "Payment/charge", TargetServiceName: "Payment", TargetHandlerName: "charge", TargetServiceType: "service", WaitingSince: 5000}}, Next: "m:1.inv"}
	require.JSONEq(t, `{"awakeables":[{"id":"sign_1","invocation_id":"inv_1","invocation_status":"suspended","target":"Payment/charge","target_service_name":"Payment","target_handler_name":"charge","target_service_ty":"service","waiting_since":"1970-01-01T00:00:05.000000000Z"}],"next_cursor":"m:1.inv"}`,
		text(t, w.ask(t, "GET", "/awakeables?service=Payment&handler=charge&key=a,b&scope=s&limit=5&cursor=m:0.inv", "")))
	require.Equal(t, Query{Filter: listing.Filter{Services: []string{"Payment"}, Handlers: []string{"charge"}, Keys: []string{"a,b"}, Scopes: []string{"s"}}, Limit: 5, Cursor: "m:0.inv"}, w.query)
	for _, query := range []string{"?status=running", "?limit=0", "?id=", "?id=inv_1", "?id=a&id=b"} {
		refused := w.ask(t, "GET", "/awakeables"+query, "")
		require.Equal(t, http.StatusBadRequest, refused.StatusCode, query)
		requireError(t, refused, text(t, refused), "", "")
	}
}

func TestOneAwakeable(t *testing.T) {
	w := seeded(t, nil)
	id := ids.Awakeable{Invocation: waitingInvocation, Signal: 17}.String()
	require.JSONEq(t, `{"awakeables":[]}`, text(t, w.ask(t, "GET", "/awakeables?id="+id, "")), "its invocation is not kept")
	w.invocation = waiting()
	for query, found := range map[string]bool{
		id: true, id + "==": true, ids.Awakeable{Invocation: waitingInvocation, Signal: 19}.String(): false,
		id + "&service=Payment&handler=charge": true, id + "&service=Other": false, id + "&handler=other": false, id + "&key=k": false, id + "&scope=s": false,
	} {
		body := text(t, w.ask(t, "GET", "/awakeables?id="+query, ""))
		if found {
			require.Contains(t, body, `"id":"`+id+`"`, query)
		} else {
			require.JSONEq(t, `{"awakeables":[]}`, body, query)
		}
	}
}

// A limited principal learns of an awakeable only within its limits.
func TestOneAwakeableWithinLimits(t *testing.T) {
	w := secured(t, map[string]access.Principal{"greeter": {Roles: access.Roles, Services: []string{"Greeter"}}, "payment": {Roles: access.Roles, Services: []string{"Payment"}}})
	w.invocation = waiting()
	id := ids.Awakeable{Invocation: waitingInvocation, Signal: 17}.String()
	ask := func(name string) string {
		return text(t, w.ask(t, "GET", "/awakeables?id="+id, "", "Authorization", "Bearer "+w.tokens[name]))
	}
	require.JSONEq(t, `{"awakeables":[]}`, ask("greeter"))
	require.Contains(t, ask("payment"), id)
}
