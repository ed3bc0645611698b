package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin/events"
	"platform/admin/rest"
	"platform/internal/access"
	"platform/internal/ids"
	"platform/internal/subscription"
)

// changing is Invocations with one invocation, which changes.
type changing struct {
	Invocations

	mu         sync.Mutex // covers the fields below
	invocation *Invocation
	err        error
}

func (f *changing) set(invocation *Invocation, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.invocation, f.err = invocation, err
}

func (f *changing) Get(context.Context, ids.Invocation, bool) (*Invocation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.invocation, f.err
}

// eventServer serves the admin API of a server over HTTP.
func eventServer(t *testing.T, stopping <-chan struct{}) (*testServer, *changing, string) {
	w := newTestServer(t, nil)
	invocations := &changing{Invocations: w}
	w.Server = New(Config{Stopping: stopping, Limits: Limits{ConcurrentRequests: 2}}, w.store, w, invocations, w.cluster)
	server := httptest.NewServer(w.Handler())
	t.Cleanup(server.Close)
	return w, invocations, server.URL
}

// listen opens a stream and returns its events as blocks of lines.
func listen(t *testing.T, url string, headers ...string) (next func() string, closeStream func()) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{}
	response, err := transport.RoundTrip(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	require.Equal(t, "no", response.Header.Get("X-Accel-Buffering"))
	lines := bufio.NewScanner(response.Body)
	next = func() string {
		var block []string
		for lines.Scan() && lines.Text() != "" {
			block = append(block, lines.Text())
		}
		return strings.Join(block, "\n")
	}
	require.Equal(t, "retry: 1000", next())
	return next, func() {
		cancel()
		_ = response.Body.Close()
		transport.CloseIdleConnections()
	}
}

// idOf is the id of an event.
func idOf(event string) string {
	_, rest, _ := strings.Cut(event, "\nid: ")
	id, _, _ := strings.Cut(rest, "\n")
	return id
}

func TestEventsOfAnInvocation(t *testing.T) {
	_, invocations, url := eventServer(t, nil)
	id := ids.NewInvocation(7, [16]byte{15: 1})
	invocations.set(&Invocation{ID: id.String(), Status: StatusRunning}, nil)
	stream := url + "/events?topics=invocation:" + id.String() + ",deployments"
	next, closeStream := listen(t, stream)
	begin := next() + next()
	require.Contains(t, begin, `data: {"topic":"invocation:`+id.String()+`","version":"`)
	require.Contains(t, begin, `data: {"topic":"deployments","version":"`)

	invocations.set(nil, ErrUnavailable) // no leader: nothing is said
	invocations.set(&Invocation{ID: id.String(), Status: StatusRunning, JournalSize: 2}, nil)
	changed := next()
	require.True(t, strings.HasPrefix(changed, "event: change\nid: "), changed)
	require.Contains(t, changed, `"topic":"invocation:`)
	closeStream()

	// A stream that continues has only events of what has changed since.
	invocations.set(nil, rest.ErrNotFound)
	next, closeStream = listen(t, stream, "Last-Event-ID", idOf(changed))
	defer closeStream()
	purged := next()
	require.Contains(t, purged, `"topic":"invocation:`)
	_, deployments, _ := strings.Cut(idOf(changed), ".")
	require.True(t, strings.HasSuffix(idOf(purged), "."+deployments), "the other topic is where it was")
}

func TestEventsOfListsShareTheirVersion(t *testing.T) {
	w, _, url := eventServer(t, nil)
	w.cluster.activity.Store(7)
	next, closeStream := listen(t, url+"/events?topics=overview&topics=invocations,cluster")
	defer closeStream()
	seen := map[string]int{}
	for range 3 {
		event := next()
		_, topic, _ := strings.Cut(event, `"topic":"`)
		topic, _, _ = strings.Cut(topic, `"`)
		seen[topic]++
	}
	require.Equal(t, map[string]int{"overview": 1, "invocations": 1, "cluster": 1}, seen)
	w.cluster.activity.Store(8)
	require.Contains(t, next()+next(), `"topic":"invocations"`)
}

func TestEventStreamsEndWithTheServer(t *testing.T) {
	stopping := make(chan struct{})
	_, _, url := eventServer(t, stopping)
	next, closeStream := listen(t, url+"/events?topics=deployments")
	defer closeStream()
	require.Contains(t, next(), "deployments")
	close(stopping)
	require.Empty(t, next(), "the stream ends")
}

// TestEventStreamsAreNotRequestsInProgress opens more streams than requests may be in progress.
func TestEventStreamsAreNotRequestsInProgress(t *testing.T) {
	w, _, url := eventServer(t, nil)
	for range 4 {
		_, closeStream := listen(t, url+"/events?topics=deployments")
		defer closeStream()
	}
	requireStatus(t, http.StatusOK, w.ask(t, "GET", "/version", ""))
}

func TestEventStreamsAreBounded(t *testing.T) {
	w, _, url := eventServer(t, nil)
	for i := range maxStreams {
		subscription, err := w.hub.Subscribe(access.Client(fmt.Sprint(i)), nil)
		require.NoError(t, err)
		defer subscription.Close()
	}
	response, err := http.Get(url + "/events?topics=deployments") //nolint:noctx // of the test
	require.NoError(t, err)
	body := requireStatus(t, http.StatusTooManyRequests, response)
	require.Contains(t, body, "too many event streams are open")
	require.NotEmpty(t, response.Header.Get("Retry-After"))
	http.DefaultClient.CloseIdleConnections()
}

// One client cannot take the streams of others, nor what is polled for them.
func TestEventStreamsOfOneClientAreBounded(t *testing.T) {
	w := secured(t, byRole())
	request := func(role, topics string) *http.Response {
		return w.ask(t, http.MethodGet, "/events?topics="+topics, "", "Authorization", "Bearer "+w.tokens[role])
	}
	viewer := access.Client("principal viewer")
	for range maxClientStreams {
		subscription, err := w.hub.Subscribe(viewer, nil)
		require.NoError(t, err)
		defer subscription.Close()
	}
	response := request("viewer", "deployments")
	body := requireStatus(t, http.StatusTooManyRequests, response)
	require.Contains(t, body, "the client has too many event streams open: a node serves 256 streams with 512 topics, and 64 with 128 of one client")
	require.NotEmpty(t, response.Header.Get("Retry-After"))

	server := httptest.NewServer(w.Handler())
	t.Cleanup(server.Close)
	next, stop := listen(t, server.URL+"/events?topics=deployments", "Authorization", "Bearer "+w.tokens["reader"])
	defer stop()
	require.Contains(t, next(), "deployments", "others are not concerned")
}

func TestTopicsAreChecked(t *testing.T) {
	w := newTestServer(t, nil)
	for query, says := range map[string]string{
		"":                        "The query parameter 'topics' is missing",
		"?topics=":                "The query parameter 'topics' is missing",
		"?topics=overvew":         "did you mean 'overview'?",
		"?topics=invocation:x":    "malformed id",
		"?topics=cluster,cluster": "occurs twice",
		"?topics=" + strings.Repeat("cluster,", 17): "17 topics",
		"?topic=cluster": "unknown query parameter 'topic'",
	} {
		body := requireStatus(t, http.StatusBadRequest, w.ask(t, "GET", "/events"+query, ""))
		require.Contains(t, body, says, query)
	}
	head := w.ask(t, "HEAD", "/events?topics=cluster", "")
	require.Equal(t, http.StatusOK, head.StatusCode)
}

// A stream does not outlive its token: the client learns that it has to log in.
func TestEventStreamOfARevokedTokenEnds(t *testing.T) {
	w := secured(t, byRole())
	created := w.ask(t, http.MethodPost, "/tokens", `{"name":"watches","roles":["viewer"]}`, "Authorization", "Bearer "+w.tokens["security"])
	var token struct{ ID, Token string }
	require.NoError(t, json.Unmarshal([]byte(text(t, created)), &token))
	server := httptest.NewServer(w.Handler())
	t.Cleanup(server.Close)
	next, stop := listen(t, server.URL+"/events?topics=rules", "Authorization", "Bearer "+token.Token)
	defer stop()
	require.Contains(t, next(), `"topic":"rules"`)
	require.Equal(t, http.StatusOK, w.ask(t, http.MethodDelete, "/tokens/"+token.ID, "", "Authorization", "Bearer "+w.tokens["security"]).StatusCode)
	require.Empty(t, next(), "the stream goes on")
}

func TestVersionsDoNotDependOnSecrets(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	version := func(property, value string) events.Version {
		w := newTestServer(t, func(c *Config) {
			c.now = func() time.Time { return now }
			c.KafkaClusters = []subscription.Cluster{{Name: "orders", Static: true, Properties: map[string]string{"bootstrap.servers": "b:9092", "sasl.password": "a", property: value}}}
		})
		v, err := w.subscriptionsVersion(t.Context())
		require.NoError(t, err)
		return v
	}
	require.Equal(t, version("sasl.password", "secret"), version("sasl.password", "guess"))
	require.NotEqual(t, version("client.id", "a"), version("client.id", "b"))
}
