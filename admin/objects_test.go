package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/internal/budget"
)

func TestObjectsArePaged(t *testing.T) {
	w := seeded(t, nil)
	w.objects, w.moreObjects = []ObjectSummary{{Service: "Counter", Key: "a/b", Entries: 2, Bytes: 12, Holder: "inv_1", Waiting: 3}, {Service: "Counter", Key: "ü"}}, true
	body := text(t, w.ask(t, "GET", "/objects?service=Counter&prefix=a&limit=2", ""))
	require.JSONEq(t, `{"objects":[{"service":"Counter","key":"a/b","state_entries":2,"state_bytes":12,"held_by":"inv_1","waiting":3},{"service":"Counter","key":"ü","state_entries":0,"state_bytes":0}],"next_cursor":"w7w"}`, body)
	require.Equal(t, ObjectQuery{Service: "Counter", Prefix: "a", Limit: 2}, w.objectQuery)
	w.objects, w.moreObjects = nil, false
	require.JSONEq(t, `{"objects":[]}`, text(t, w.ask(t, "GET", "/objects?service=Counter&cursor=w7w", "")))
	require.Equal(t, "ü", *w.objectQuery.After)
	w.objects, w.moreObjects = []ObjectSummary{{Service: "Counter"}}, true // the empty key is the first one
	require.Contains(t, text(t, w.ask(t, "GET", "/objects?service=Counter&limit=1", "")), `"next_cursor":"-"`)
	require.Nil(t, w.objectQuery.After)
	w.objects, w.moreObjects = nil, false
	require.Equal(t, http.StatusOK, w.ask(t, "GET", "/objects?service=Counter&limit=1&cursor=-", "").StatusCode)
	require.Empty(t, *w.objectQuery.After)
	for query, status := range map[string]int{
		"": 400, "?service=None": 404, "?service=Greeter": 400, "?service=Counter&limit=0": 400, "?service=Counter&cursor=*": 400, "?service=Counter&scope=x": 400,
		"?service=Counter&service=Greeter": 400, "?service=Counter&page=2": 400,
	} {
		rejected := w.ask(t, "GET", "/objects"+query, "")
		require.Equal(t, status, rejected.StatusCode, query)
		requireError(t, rejected, text(t, rejected), "", "")
	}
}

func TestScopesOfAService(t *testing.T) {
	w := seeded(t, nil)
	require.JSONEq(t, `{"scopes":[]}`, text(t, w.ask(t, "GET", "/services/Counter/scopes", "")))
	w.scopes = []string{"acme", "globex"}
	require.JSONEq(t, `{"scopes":["acme","globex"]}`, text(t, w.ask(t, "GET", "/services/Counter/scopes", "")))
	for service, status := range map[string]int{"None": http.StatusNotFound, "Greeter": http.StatusBadRequest} {
		require.Equal(t, status, w.ask(t, "GET", "/services/"+service+"/scopes", "").StatusCode)
	}
}

// A limited token must see its scopes also if there are more than MaxScopes before them.
func TestScopesOfALimitedToken(t *testing.T) {
	all := access.Principal{Roles: access.Roles}
	limited := all
	limited.Scopes = []string{"z"}
	w := secured(t, map[string]access.Principal{"all": all, "limited": limited})
	w.offers["http://large/"] = large
	require.Equal(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://large"}`, "Authorization", "Bearer "+w.tokens["all"]).StatusCode)
	for i := range MaxScopes {
		w.scopes = append(w.scopes, fmt.Sprint("a", i))
	}
	w.scopes = append(w.scopes, "z")
	response := w.ask(t, "GET", "/services/Counter/scopes", "", "Authorization", "Bearer "+w.tokens["limited"])
	require.JSONEq(t, `{"scopes":["z"]}`, text(t, response))
}

func TestOneObject(t *testing.T) {
	w := seeded(t, nil)
	w.detail = &ObjectDetail{ObjectSummary: ObjectSummary{Service: "Counter", Key: "a/b", Entries: 1, Bytes: 3}}
	require.JSONEq(t, `{"service":"Counter","key":"a/b","state_entries":1,"state_bytes":3,"queue":[]}`, text(t, w.ask(t, "GET", "/objects/Counter/a%2Fb", "")))
	require.Equal(t, Object{Service: "Counter", Key: "a/b"}, w.object)
	require.Equal(t, http.StatusNotFound, w.ask(t, "GET", "/objects/None/a", "").StatusCode)
}

func TestKeysCanBeEmpty(t *testing.T) {
	w := seeded(t, nil)
	w.detail = &ObjectDetail{ObjectSummary: ObjectSummary{Service: "Counter"}}
	require.Equal(t, http.StatusOK, w.ask(t, "GET", "/objects/Counter/", "").StatusCode)
	require.Equal(t, Object{Service: "Counter"}, w.object)
	require.Equal(t, http.StatusOK, w.ask(t, "HEAD", "/objects/Counter/", "").StatusCode)
	require.Equal(t, http.StatusBadRequest, w.ask(t, "GET", "/objects/Counter/?scpe=a", "").StatusCode)
	require.Equal(t, http.StatusBadRequest, w.ask(t, "GET", "/objects/Counter/?scope=a&scope=b", "").StatusCode)
	require.Equal(t, http.StatusOK, w.ask(t, "GET", "/services/Counter/state?object_key=", "").StatusCode)
	require.Equal(t, http.StatusBadRequest, w.ask(t, "GET", "/services/Counter/state", "").StatusCode)
	require.Equal(t, http.StatusAccepted, w.ask(t, "POST", "/services/Counter/state", `{"object_key":"","new_state":{"a":"1"}}`).StatusCode)
	require.Equal(t, Object{Service: "Counter"}, w.update.Object)
	require.Equal(t, http.StatusUnprocessableEntity, w.ask(t, "POST", "/services/Counter/state", `{"new_state":{"a":"1"}}`).StatusCode)
}

// A state can be as large as the bodies that all requests may hold.
func TestStatesAreReadWithinTheBudget(t *testing.T) {
	w := seeded(t, nil)
	w.detail = &ObjectDetail{ObjectSummary: ObjectSummary{Service: "Counter", Key: "k", Entries: 1, Bytes: 1 << 20}}
	bodies := budget.New(2<<20, 1<<20)
	read := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "http://localhost:9070/services/Counter/state?object_key=k", nil)
		out := httptest.NewRecorder()
		w.Handler().ServeHTTP(out, r.WithContext(budget.With(t.Context(), bodies.Account())))
		return out
	}
	require.Equal(t, http.StatusOK, read().Code)
	used, _ := bodies.Stats()
	require.Zero(t, used)
	require.True(t, bodies.Account().Reserve(1<<20))
	require.True(t, bodies.Account().Reserve(1<<20))
	rejected := read()
	require.Equal(t, http.StatusServiceUnavailable, rejected.Code)
	require.Contains(t, rejected.Body.String(), "RT0026")
	require.NotEmpty(t, rejected.Header().Get("Retry-After"))
}

// Reads of small states leave the part of the memory that is reserved for small bodies as it was.
func TestReadingStatesKeepsTheReserveOfSmallBodies(t *testing.T) {
	const small, limit = 64 << 10, 16 << 20
	w := seeded(t, nil)
	w.detail = &ObjectDetail{ObjectSummary: ObjectSummary{Service: "Counter", Key: "k", Entries: 1, Bytes: small}}
	bodies := budget.New(limit, limit)
	for range limit / small {
		r := httptest.NewRequest(http.MethodGet, "http://localhost:9070/services/Counter/state?object_key=k", nil)
		out := httptest.NewRecorder()
		w.Handler().ServeHTTP(out, r.WithContext(budget.With(t.Context(), bodies.Account())))
		require.Equal(t, http.StatusOK, out.Code)
	}
	require.True(t, bodies.Account().Reserve(limit))
	require.False(t, bodies.Account().Reserve(limit/8), "large bodies have used up the memory that is for all")
	require.True(t, bodies.Account().Reserve(small), "small ones have some of their own")
}

// Values of promises are payloads.
func TestPromisesAreShownToReaders(t *testing.T) {
	text, binary := []byte("done"), []byte{0xff}
	promises := func(permitted bool) []WorkflowPromise {
		list := []WorkflowPromise{{Name: "a", Completed: true, Value: &text}, {Name: "b", Completed: true, Value: &binary}, {Name: "c", Completed: true, Failure: "no"}, {Name: "d"}}
		for i := range list {
			list[i].show(permitted)
		}
		return list
	}
	shown := promises(true)
	require.Equal(t, "done", *shown[0].Text)
	require.Equal(t, "/w==", *shown[1].Base64)
	require.Equal(t, "no", shown[2].Failure)
	for _, p := range promises(false) {
		require.Nil(t, p.Text)
		require.Nil(t, p.Base64)
		require.Empty(t, p.Failure)
	}
}
