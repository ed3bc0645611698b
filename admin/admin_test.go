package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/internal/target"
	"platform/invoker/discovery"
	"platform/metadata"
	"platform/partition/listing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// testServer is a server with a real registry and an endpoint and invocations that the
// test decides about.
type testServer struct {
	*Server
	store *metadata.Store
	// offers is what Discover finds at each address.
	offers map[string]func() (*metadata.Deployment, error)
	asked  []discovery.Request
	fakeOperator
	cluster *fakeCluster
	// The results of Invocations.
	page       Page
	query      Query
	awakeables AwakeablePage
	counts     *Counts
	failures   *FailureGroups
	invocation *Invocation
	tokens     map[string]string // by name of the principal
	withEvents bool
	inUse      int

	objectQuery ObjectQuery
	objects     []ObjectSummary
	moreObjects bool
	scopes      []string
	object      Object
	detail      *ObjectDetail

	err    error
	logged *bytes.Buffer
}

func newTestServer(t *testing.T, change func(*Config)) *testServer {
	w := &testServer{offers: map[string]func() (*metadata.Deployment, error){}, logged: &bytes.Buffer{}}
	w.store = openStore(t)
	cfg := Config{
		Build:    Build{Version: "1.0.0", Commit: "0123456789abcdef", Toolchain: "go1.26.8 linux/amd64", Level: 3},
		Features: map[string]bool{"protocol_v7": false},
		Logger:   slog.New(slog.NewTextHandler(w.logged, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	w.cluster = &fakeCluster{store: w.store}
	w.Server = New(cfg, w.store, w, w, w.cluster)
	return w
}

// restart replaces the server by a new one with the same configuration and another registry.
func (w *testServer) restart(registry Registry) { w.Server = New(w.cfg, registry, w, w, w.cluster) }

// openStore opens a registry with a clock and ids that repeat.
func openStore(t *testing.T) *metadata.Store {
	quiet := slog.New(slog.DiscardHandler)
	transport, err := raftgroup.NewTransport(raftgroup.TransportConfig{ClusterID: "c", NodeID: "n1", Address: "127.0.0.1:1", Logger: quiet})
	require.NoError(t, err)
	clock, unique := time.UnixMilli(1_700_000_000_000), uint64(0)
	store, err := metadata.Open(metadata.Config{
		Dir: t.TempDir(), LocalID: "n1", Transport: transport,
		Voters:  []raft.Server{{ID: "n1", Address: "127.0.0.1:1"}},
		Profile: raftgroup.Test(), Logger: quiet,
		Now: func() time.Time {
			clock = clock.Add(time.Second)
			return clock
		},
		NewID: func() (id [16]byte) {
			unique++
			binary.BigEndian.PutUint64(id[8:], unique)
			return id
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, store.Close())
		require.NoError(t, transport.Close())
	})
	return store
}

func (w *testServer) Convert(_ context.Context, c discovery.Conversion) (discovery.Converted, error) {
	if c.Serde == "unknown" {
		return discovery.Converted{Status: 404, Body: []byte("no serde")}, nil
	}
	if c.Serde == "broken" {
		return discovery.Converted{Status: 500, Body: []byte("cannot be decoded")}, nil
	}
	text := fmt.Sprintf("%s %s %v %s %s", c.Deployment.ID, c.Service, c.Encode, c.Serde, c.Body)
	return discovery.Converted{Status: 200, ContentType: "text/x-test", Body: []byte(text)}, nil
}

func (w *testServer) Discover(ctx context.Context, e discovery.Request) (*metadata.Deployment, error) {
	w.asked = append(w.asked, e)
	offer := w.offers[cmp.Or(e.ARN, e.URI)]
	if offer == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	d, err := offer()
	if d != nil {
		d.URI, d.ARN, d.HTTP11, d.AdditionalHeaders = e.URI, e.ARN, e.UseHTTP11, e.AdditionalHeaders
	}
	return d, err
}

func (w *testServer) List(_ context.Context, q Query) (Page, error) {
	w.query = q
	return w.page, w.err
}

func (w *testServer) Count(_ context.Context, f listing.Filter, partial bool) (*Counts, error) {
	w.query = Query{Filter: f, Partial: partial}
	return w.counts, w.err
}

func (w *testServer) Failures(_ context.Context, f listing.Filter, partial bool) (*FailureGroups, error) {
	w.query = Query{Filter: f, Partial: partial}
	return w.failures, w.err
}

func (w *testServer) Get(_ context.Context, id ids.Invocation, journal bool) (*Invocation, error) {
	if w.invocation == nil && w.err == nil {
		return nil, rest.ErrNotFound
	}
	w.withEvents = journal
	return w.invocation, w.err
}

func (w *testServer) Awakeables(_ context.Context, q Query) (AwakeablePage, error) {
	w.query = q
	return w.awakeables, w.err
}

func (w *testServer) Objects(_ context.Context, q ObjectQuery) ([]ObjectSummary, bool, error) {
	w.objectQuery = q
	return w.objects, w.moreObjects, w.err
}

func (w *testServer) Scopes(_ context.Context, _ string, within []string) ([]string, error) {
	scopes := slices.DeleteFunc(slices.Clone(w.scopes), func(s string) bool { return len(within) > 0 && !slices.Contains(within, s) })
	return scopes[:min(len(scopes), MaxScopes)], w.err
}

func (w *testServer) Object(_ context.Context, o Object) (*ObjectDetail, error) {
	w.object = o
	if w.detail == nil && w.err == nil {
		return &ObjectDetail{}, nil
	}
	return w.detail, w.err
}

func (w *testServer) InUse(context.Context, ids.Deployment) (int, error) { return w.inUse, w.err }

// ask sends one request; a body makes its content type JSON.
func (w *testServer) ask(t *testing.T, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, "http://localhost:9070"+path, strings.NewReader(body)).WithContext(t.Context())
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	w.Handler().ServeHTTP(recorder, r)
	return recorder.Result()
}

// text returns the body of a response and closes it.
func text(t *testing.T, answer *http.Response) string {
	t.Helper()
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return strings.TrimSuffix(string(body), "\n")
}

// goldenJSON compares a response with a file, both indented.
func goldenJSON(t *testing.T, name string, got string) {
	t.Helper()
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, []byte(got), "", "  "))
	indented.WriteByte('\n')
	path := filepath.Join("testdata", name+".json")
	if *rewrite {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, indented.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), indented.String())
}

func ptr[T any](v T) *T { return &v }

// small is a deployment of one service with one handler.
func small() (*metadata.Deployment, error) {
	return &metadata.Deployment{
		Bidirectional: true, MinProtocol: 5, MaxProtocol: 6, SDKVersion: "sdk/1.0.0",
		Services: []*metadata.Service{{Name: "Greeter", Handlers: []*metadata.Handler{{Name: "greet", Input: metadata.InputRules{Any: true}}}}},
	}, nil
}

// large uses everything a manifest can say.
func large() (*metadata.Deployment, error) {
	return &metadata.Deployment{
		MinProtocol: 5, MaxProtocol: 6, SDKVersion: "sdk/1.0.0",
		Services: []*metadata.Service{{
			Name: "Counter", Type: metadata.VirtualObject, Documentation: "Counts <things>.", Metadata: map[string]string{"team": "a"},
			Options: metadata.Options{
				InactivityTimeout: ptr(90 * time.Second), JournalRetention: ptr(30 * 24 * time.Hour), EnableLazyState: ptr(true),
				Retry: metadata.RetryOptions{MaxAttempts: ptr(3), Factor: ptr(1.5), OnMaxAttempts: ptr(metadata.Kill)},
			},
			Handlers: []*metadata.Handler{{
				Name: "add", Type: target.ObjectExclusive, Documentation: "Adds.", Metadata: map[string]string{"x": "y"},
				Input:  metadata.InputRules{Required: true, ContentType: "application/json", JSONSchema: json.RawMessage(`{"type":"integer"}`)},
				Output: metadata.OutputRules{ContentType: "application/json", JSONSchema: json.RawMessage(`true`)},
				Options: metadata.Options{
					Public: ptr(false), AbortTimeout: ptr(time.Duration(0)), EnableLazyState: ptr(false), JournalRetention: ptr(8 * 24 * time.Hour),
					Retry: metadata.RetryOptions{InitialInterval: ptr(time.Second), MaxInterval: ptr(time.Minute), Factor: ptr(3.0), OnMaxAttempts: ptr(metadata.Pause)},
				},
			}, {
				Name: "get", Type: target.ObjectShared, Input: metadata.InputRules{}, Output: metadata.OutputRules{ContentType: "text/plain"},
			}},
		}, {
			Name: "Signup", Type: metadata.Workflow,
			Options: metadata.Options{JournalRetention: ptr(time.Duration(0))},
			Handlers: []*metadata.Handler{
				{Name: "run", Type: target.WorkflowRun, Input: metadata.InputRules{Any: true}, Options: metadata.Options{WorkflowRetention: ptr(2 * time.Hour)}},
				{Name: "confirm", Type: target.WorkflowShared, Input: metadata.InputRules{ContentType: "application/json"}},
			},
		}},
	}, nil
}

var errPlain = errors.New("disk on fire at /secret/path")
