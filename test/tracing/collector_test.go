package tracing

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// receiver is an OTLP collector that keeps what it receives.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	grpc, http string // addresses

	mu        sync.Mutex
	spans     []*spans.Span
	instances map[string]string   // by span id: which node exported it last
	headers   map[string][]string // of the last request
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{instances: map[string]string{}}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.grpc = ln.Addr().String()
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(server.Stop)
	web := httptest.NewServer(http.HandlerFunc(r.post))
	r.http = web.Listener.Addr().String()
	t.Cleanup(web.Close)
	return r
}

// Export implements the service over gRPC.
func (r *receiver) Export(ctx context.Context, in *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	headers, _ := metadata.FromIncomingContext(ctx)
	r.add(in, headers)
	return &collector.ExportTraceServiceResponse{}, nil
}

func (r *receiver) post(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	in := &collector.ExportTraceServiceRequest{}
	if err != nil || req.URL.Path != "/v1/traces" || proto.Unmarshal(body, in) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	headers := map[string][]string{}
	for name, values := range req.Header {
		headers[strings.ToLower(name)] = values
	}
	r.add(in, headers)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (r *receiver) add(in *collector.ExportTraceServiceRequest, headers map[string][]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers = headers
	for _, of := range in.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			r.spans = append(r.spans, scope.Spans...)
			for _, s := range scope.Spans {
				r.instances[string(s.SpanId)] = valueOf(of.Resource.Attributes, "service.instance.id")
			}
		}
	}
}

// instance returns the node that exported a span.
func (r *receiver) instance(s *spans.Span) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instances[string(s.SpanId)]
}

// trace returns the spans of a trace, without repeated ones.
func (r *receiver) trace(id string) []*spans.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*spans.Span
	for _, s := range r.spans {
		if hex.EncodeToString(s.TraceId) == id && !slices.ContainsFunc(found, func(o *spans.Span) bool { return string(o.SpanId) == string(s.SpanId) }) {
			found = append(found, s)
		}
	}
	return found
}

// names returns the names of all received spans, also of repeated ones.
func (r *receiver) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, s := range r.spans {
		all = append(all, s.Name)
	}
	return all
}

// tree prints the spans of a trace, each below its parent, in order of their start.
func (r *receiver) tree(trace string) string {
	all := r.trace(trace)
	slices.SortStableFunc(all, func(a, b *spans.Span) int {
		if a.StartTimeUnixNano != b.StartTimeUnixNano && !sameMoment(a, b) {
			return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano))
		}
		return strings.Compare(order(a), order(b))
	})
	known := map[string]bool{}
	for _, s := range all {
		known[string(s.SpanId)] = true
	}
	var out strings.Builder
	var print func(parent string, depth int)
	print = func(parent string, depth int) {
		for _, s := range all {
			above := string(s.ParentSpanId)
			if above != parent && (depth > 0 || known[above]) {
				continue
			}
			fmt.Fprintf(&out, "%s%s\n", strings.Repeat("  ", depth), line(s))
			print(string(s.SpanId), depth+1)
		}
	}
	print("", 0)
	return out.String()
}

// sameMoment reports whether the order of two spans depends on their kinds only: the span of the
// end of an invocation starts when the invocation was due, before its first attempt.
func sameMoment(a, b *spans.Span) bool {
	return strings.HasPrefix(a.Name, "invocation-end") || strings.HasPrefix(b.Name, "invocation-end")
}

func order(s *spans.Span) string {
	if strings.HasPrefix(s.Name, "invocation-end") {
		return "~"
	}
	return s.Name
}

// line describes a span.
func line(s *spans.Span) string {
	text := s.Name
	for _, key := range []string{"platform.attempt.outcome", "platform.invocation.result", "platform.error.code"} {
		if v := attribute(s, key); v != "" {
			text += " " + v
		}
	}
	var events []string
	for _, e := range s.Events {
		name := strings.TrimPrefix(e.Name, "platform.invocation.lifecycle.")
		for _, a := range e.Attributes {
			if a.Key == "platform.journal.command.type" || a.Key == "platform.journal.command.name" {
				name += ":" + a.Value.GetStringValue()
			}
		}
		events = append(events, name)
	}
	if len(events) > 0 {
		text += " [" + strings.Join(events, " ") + "]"
	}
	if len(s.Links) > 0 {
		text += " linked"
	}
	if s.Status.GetCode() == spans.Status_STATUS_CODE_ERROR {
		text += " !" + s.Status.Message
	}
	return text
}

func attribute(s *spans.Span, key string) string { return valueOf(s.Attributes, key) }

func valueOf(attributes []*common.KeyValue, key string) string {
	for _, a := range attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}
