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

// script handles one attempt at the endpoint.
type script func(x *exchange)

// exchange is an attempt as the endpoint sees it.
type exchange struct {
	w       http.ResponseWriter
	r       *http.Request
	attempt int // starting at 1
}

// head sends status 200 and the requested content type.
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

// replay reads the Start message and the entries that it announces.
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

// drain reads until the server ends the request.
func (x *exchange) drain() { _, _ = io.Copy(io.Discard, x.r.Body) }

// frame returns a message with its header.
func frame(kind journal.Type, payload []byte) []byte {
	return append(protocol.AppendHeader(nil, kind, len(payload)), payload...)
}

type marshaler interface{ MarshalVT() ([]byte, error) }

// message returns a frame with a well-formed payload.
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

// succeed is a handler that returns "hi".
func succeed(x *exchange) {
	x.replay()
	x.head()
	x.send(output, end)
	x.drain()
}

// respond replays, sends the head and messages, and waits for the server to end the request.
func respond(messages ...[]byte) script {
	return func(x *exchange) {
		x.replay()
		x.head()
		x.send(messages...)
		x.drain()
	}
}

// respondAndClose is respond without waiting.
func respondAndClose(messages ...[]byte) script {
	return func(x *exchange) {
		x.replay()
		x.head()
		x.send(messages...)
	}
}

// respondStatus responds with a status, one header and a body.
func respondStatus(status int, header, value, body string) script {
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

// newEndpoint serves HTTP/1.1 and HTTP/2 with prior knowledge until t ends.
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

// script sets the script of a handler.
func (e *endpoint) script(name string, s script) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.scripts[name] = s
}

// attemptCount returns the number of attempts of a handler.
func (e *endpoint) attemptCount(name string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.attempts[name]
}

// object is a JSON object.
type object map[string]any

// manifest returns the manifest of an endpoint with the given services.
func manifest(services ...object) object {
	return object{"protocolMode": "BIDI_STREAM", "minProtocolVersion": 5, "maxProtocolVersion": 6, "services": services}
}

// serviceManifest returns the manifest of a service, merged with options.
func serviceManifest(name, kind string, options object, handlers ...object) object {
	s := object{"name": name, "ty": kind, "handlers": handlers}
	for k, v := range options {
		s[k] = v
	}
	return s
}

const manifestType = "application/vnd.restate.endpointmanifest.v4+json"

// serveManifest responds to discovery with a manifest.
func serveManifest(t testing.TB, m object) http.HandlerFunc {
	body, err := json.Marshal(m)
	require.NoError(t, err)
	return serveResponse(http.StatusOK, manifestType, string(body))
}

func serveResponse(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}
