package badinput

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/proto/service"
)

// script is what an endpoint does with one attempt.
type script func(x *exchange)

// exchange is one attempt as the endpoint sees it.
type exchange struct {
	w       http.ResponseWriter
	r       *http.Request
	attempt int // from 1
}

// head sends status 200 and the content type that was asked for.
func (x *exchange) head() {
	x.w.Header().Set("content-type", x.r.Header.Get("content-type"))
	x.w.Header().Set("x-restate-server", "script/1")
	x.w.WriteHeader(http.StatusOK)
	x.flush()
}

func (x *exchange) send(messages ...[]byte) {
	for _, m := range messages {
		_, _ = x.w.Write(m)
	}
	x.flush()
}

func (x *exchange) flush() { _ = http.NewResponseController(x.w).Flush() }

// read reads one message; ok is false at the end of the request.
func (x *exchange) read() (kind journal.Type, payload []byte, ok bool) {
	var h [protocol.HeaderLen]byte
	if _, err := io.ReadFull(x.r.Body, h[:]); err != nil {
		return 0, nil, false
	}
	payload = make([]byte, binary.BigEndian.Uint32(h[4:]))
	_, err := io.ReadFull(x.r.Body, payload)
	return journal.Type(binary.BigEndian.Uint16(h[:])), payload, err == nil
}

// replay reads the start and the entries that it announces.
func (x *exchange) replay() (entries []journal.Type) {
	_, payload, _ := x.read()
	var start service.StartMessage
	if start.UnmarshalVT(payload) != nil {
		return nil
	}
	for range start.KnownEntries {
		kind, _, _ := x.read()
		entries = append(entries, kind)
	}
	return entries
}

// rest reads until the server ends the request.
func (x *exchange) rest() { _, _ = io.Copy(io.Discard, x.r.Body) }

// frame is a message with its header.
func frame(kind journal.Type, payload []byte) []byte {
	return append(protocol.AppendHeader(nil, kind, len(payload)), payload...)
}

type marshaler interface{ MarshalVT() ([]byte, error) }

// message is a frame with a well-formed payload.
func message(kind journal.Type, m marshaler) []byte {
	payload, err := m.MarshalVT()
	if err != nil {
		panic(err)
	}
	return frame(kind, payload)
}

var (
	end    = frame(protocol.End, nil)
	output = message(journal.Output, &service.OutputCommandMessage{
		Result: &service.OutputCommandMessage_Value{Value: &service.Value{Content: []byte(`"hi"`)}},
	})
)

// proper is what a handler does that answers "hi".
func proper(x *exchange) {
	x.replay()
	x.head()
	x.send(output, end)
	x.rest()
}

// answer replays, sends the head and messages, and waits for the server's end.
func answer(messages ...[]byte) script {
	return func(x *exchange) {
		x.replay()
		x.head()
		x.send(messages...)
		x.rest()
	}
}

// leave is answer without waiting.
func leave(messages ...[]byte) script {
	return func(x *exchange) {
		x.replay()
		x.head()
		x.send(messages...)
	}
}

// refuse answers with a status, one header and a body.
func refuse(status int, header, value, body string) script {
	return func(x *exchange) {
		if header != "" {
			x.w.Header().Set(header, value)
		}
		x.w.WriteHeader(status)
		_, _ = io.WriteString(x.w, body)
	}
}

// endpoint serves a manifest and a script for each handler.
type endpoint struct {
	*httptest.Server

	mu       sync.Mutex // covers the fields below
	discover http.HandlerFunc
	scripts  map[string]script // by Service/handler
	attempts map[string]int
}

// newEndpoint serves HTTP/2 with prior knowledge, and HTTP/1.1, until t ends.
func newEndpoint(t testing.TB, discover http.HandlerFunc) *endpoint {
	e := &endpoint{discover: discover, scripts: map[string]script{}, attempts: map[string]int{}}
	e.Server = httptest.NewUnstartedServer(e)
	e.Config.Protocols = new(http.Protocols)
	e.Config.Protocols.SetHTTP1(true)
	e.Config.Protocols.SetUnencryptedHTTP2(true)
	e.Start()
	t.Cleanup(func() {
		e.CloseClientConnections()
		e.Close()
	})
	return e
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, invoked := strings.CutPrefix(r.URL.Path, "/invoke/")
	e.mu.Lock()
	discover, run := e.discover, e.scripts[name]
	e.attempts[name]++
	attempt := e.attempts[name]
	e.mu.Unlock()
	switch {
	case !invoked:
		discover(w, r)
	case run == nil:
		http.Error(w, "no such handler", http.StatusNotFound)
	default:
		run(&exchange{w: w, r: r, attempt: attempt})
	}
}

// script sets what a handler does from now on.
func (e *endpoint) script(name string, s script) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.scripts[name] = s
}

// asked is how many attempts of a handler there were.
func (e *endpoint) asked(name string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.attempts[name]
}

// object is JSON in the making.
type object map[string]any

// manifest describes an endpoint with the given services.
func manifest(services ...object) object {
	return object{"protocolMode": "BIDI_STREAM", "minProtocolVersion": 5, "maxProtocolVersion": 6, "services": services}
}

// svc describes a service; options of the service are merged into it.
func svc(name, kind string, options object, handlers ...object) object {
	s := object{"name": name, "ty": kind, "handlers": handlers}
	for k, v := range options {
		s[k] = v
	}
	return s
}

const manifestType = "application/vnd.restate.endpointmanifest.v4+json"

// offering answers discovery with a manifest.
func offering(t testing.TB, m object) http.HandlerFunc {
	body, err := json.Marshal(m)
	require.NoError(t, err)
	return answering(http.StatusOK, manifestType, string(body))
}

func answering(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}
