package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"platform/admin/events"
	"platform/admin/rest"
	"platform/internal/access"
	"platform/internal/ids"
)

// Limits of event streams.
const (
	maxStreams       = 256 // per node
	maxStreamTopics  = 16  // per stream
	maxSources       = 512 // polled for all streams
	maxClientStreams = 64  // of one client
	maxClientSources = 128 // polled for the streams of one client
	topicReadTimeout = 5 * time.Second
	heartbeat        = 15 * time.Second
	recheckInterval  = 2 * time.Second // how often the token of a stream is checked
)

// Intervals at which versions are read.
const (
	quickInterval = 250 * time.Millisecond // single invocations and the metadata
	slowInterval  = time.Second            // lists, which are expensive for clients to reload
)

const eventsPath = "/events"

// topicNames are the topics other than those of single invocations.
var topicNames = []string{"invocations", "overview", "failures", "cluster", "deployments", "rules", "jobs", "subscriptions"}

const invocationTopic = "invocation:"

// streamEvents notifies a client of changes until it disconnects or the server stops.
func (s *Server) streamEvents(c echo.Context) error {
	topics, sources, err := s.readTopics(c)
	if err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies must not buffer events
	if c.Request().Method == http.MethodHead {
		return c.NoContent(http.StatusOK)
	}
	changes, err := s.hub.Subscribe(access.ClientFrom(c.Request().Context()), sources)
	if err != nil {
		return &rest.Error{Status: http.StatusTooManyRequests, Retry: true, After: heartbeat, Message: fmt.Sprintf(
			"%v: a node serves %d streams with %d topics, and %d with %d of one client, which is a token or user or, without, an address; close some, or try again later",
			err, maxStreams, maxSources, maxClientStreams, maxClientSources)}
	}
	defer changes.Close()
	// Streams have their own limit and do not count as requests in progress.
	s.active.Add(-1)
	defer s.active.Add(1)

	last := c.Request().Header.Get("Last-Event-ID")
	if given := c.QueryParam("last_event_id"); given != "" {
		last = given
	}
	stream := &eventStream{c: c, topics: topics, sent: events.ParsePosition(last, len(topics)), permitted: func() bool {
		p, err := s.cfg.Authenticator.Authenticate(c.Request())
		return err == nil && p.Allows(access.View) && !p.Limited()
	}}
	return stream.run(c.Request().Context(), s.cfg.Stopping, changes)
}

// eventStream is one response with events.
type eventStream struct {
	c      echo.Context
	topics []string
	sent   events.Position // versions that the client has received
	// permitted reports whether the client may still read events: its token may have expired or
	// been revoked.
	permitted func() bool
}

// run writes events until ctx ends, the server stops, or the client is no longer permitted to read
// them.
func (e *eventStream) run(ctx context.Context, stopping <-chan struct{}, changes *events.Subscription) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	recheck := time.NewTicker(recheckInterval)
	defer recheck.Stop()
	text := []byte("retry: 1000\n\n")
	for {
		if len(text) > 0 {
			if _, err := e.c.Response().Write(text); err != nil {
				return nil //nolint:nilerr // the client has disconnected
			}
			e.c.Response().Flush()
		}
		select {
		case <-changes.Changed():
			text = e.changes(changes.Versions())
		case <-beat.C:
			text = []byte(": still connected\n\n")
		case <-recheck.C:
			text = nil
			if !e.permitted() {
				return nil
			}
		case <-stopping:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// changes returns the events for versions that the client has not received.
func (e *eventStream) changes(versions []events.Version) []byte {
	var text bytes.Buffer
	for i, version := range versions {
		if version == events.Unknown || version == e.sent[i] {
			continue
		}
		e.sent[i] = version
		data, _ := json.Marshal(changeNotice{e.topics[i], fmt.Sprintf("%x", uint64(version))}) // never fails
		fmt.Fprintf(&text, "event: change\nid: %s\ndata: %s\n\n", e.sent, data)
	}
	return text.Bytes()
}

// changeNotice is the data of an event.
type changeNotice struct {
	Topic   string `json:"topic"`
	Version string `json:"version"`
}

// readTopics parses the topics of a stream.
func (s *Server) readTopics(c echo.Context) (topics []string, sources []events.Source, err error) {
	topics, err = parsed(c.QueryParams()["topics"], anyText)
	if err != nil {
		return nil, nil, err
	}
	topics = slices.DeleteFunc(topics, func(topic string) bool { return topic == "" })
	switch {
	case len(topics) == 0:
		return nil, nil, rest.BadRequest("The query parameter 'topics' is missing: a list of invocation:ID, %s", strings.Join(topicNames, ", "))
	case len(topics) > maxStreamTopics:
		return nil, nil, rest.BadRequest("The query parameter 'topics' is invalid: it has %d topics; a stream may have %d", len(topics), maxStreamTopics)
	}
	for i, topic := range topics {
		if slices.Contains(topics[:i], topic) {
			return nil, nil, rest.BadRequest("The query parameter 'topics' is invalid: %q occurs twice", topic)
		}
		source, err := s.sourceOf(topic)
		if err != nil {
			return nil, nil, err
		}
		sources = append(sources, source)
	}
	return topics, sources, nil
}

// sourceOf returns the source of the versions of a topic.
func (s *Server) sourceOf(topic string) (events.Source, error) {
	if text, ok := strings.CutPrefix(topic, invocationTopic); ok {
		id, err := ids.ParseInvocation(text)
		if err != nil {
			return events.Source{}, rest.BadRequest("The query parameter 'topics' is invalid: %q: %v", topic, err)
		}
		return events.Source{Name: topic, Interval: quickInterval, Read: func(ctx context.Context) (events.Version, error) {
			return s.invocationVersion(ctx, id)
		}}, nil
	}
	switch topic {
	case "invocations", "overview", "failures":
		return events.Source{Name: "activity", Interval: slowInterval, Read: s.activityVersion}, nil
	case "cluster":
		return events.Source{Name: topic, Interval: slowInterval, Read: s.clusterVersion}, nil
	case "deployments":
		return events.Source{Name: topic, Interval: quickInterval, Read: func(context.Context) (events.Version, error) {
			return stateVersion(s.registry.Schemas().Version), nil
		}}, nil
	case "jobs":
		return events.Source{Name: topic, Interval: quickInterval, Read: func(context.Context) (events.Version, error) {
			return s.jobsVersion(), nil
		}}, nil
	case "subscriptions":
		return events.Source{Name: topic, Interval: slowInterval, Read: s.subscriptionsVersion}, nil
	case "rules":
		return events.Source{Name: topic, Interval: quickInterval, Read: func(context.Context) (events.Version, error) {
			book, _ := s.registry.Rules()
			return stateVersion(book), nil
		}}, nil
	}
	return events.Source{}, rest.BadRequest("The query parameter 'topics' is invalid: there is no topic %q%s", topic, rest.Alternatives(topic, "topics", slices.Concat(topicNames, []string{"invocation:ID"})))
}

// subscriptionsVersion returns the version of the subscriptions, their topic partitions, and the
// Kafka clusters.
func (s *Server) subscriptionsVersion(ctx context.Context) (events.Version, error) {
	return stateVersion(s.subscriptions.State(ctx)), nil
}

// stateVersion returns the version of a state.
func stateVersion(state any) events.Version {
	data, err := json.Marshal(state)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", state, err)) // cannot fail: only types of this package are encoded
	}
	return events.VersionOf(data)
}

// invocationVersion returns the version of the data shown of an invocation. Of the journal, it
// includes the length only.
func (s *Server) invocationVersion(ctx context.Context, id ids.Invocation) (events.Version, error) {
	invocation, err := s.invocations.Get(ctx, id, false)
	if errors.Is(err, rest.ErrNotFound) {
		return stateVersion(nil), nil
	}
	if err != nil {
		return events.Unknown, err
	}
	return stateVersion(invocation), nil
}

// jobsVersion returns a version that changes with the progress of any job.
func (s *Server) jobsVersion() events.Version {
	versions := map[string]uint64{}
	for _, job := range s.registry.Jobs() {
		versions[job.ID] = job.Version
	}
	return stateVersion(versions)
}

// activityVersion returns a version that changes with any event of an invocation and with the marks
// of failure groups.
func (s *Server) activityVersion(ctx context.Context) (events.Version, error) {
	activity, err := s.cluster.Activity(ctx)
	return stateVersion([]any{activity, s.registry.FailureMarks()}), err
}

// clusterVersion returns the version of the state of the cluster, excluding log positions of
// replicas and the usage of machines, which change constantly.
func (s *Server) clusterVersion(ctx context.Context) (events.Version, error) {
	state, err := s.cluster.State(ctx)
	if err != nil {
		return events.Unknown, err
	}
	stable := *state
	stable.Nodes = slices.Clone(state.Nodes)
	for i := range stable.Nodes {
		stable.Nodes[i].Usage = nil
	}
	stable.Partitions = slices.Clone(state.Partitions)
	for i := range stable.Partitions {
		replicas := slices.Clone(stable.Partitions[i].Replicas)
		for j, r := range replicas {
			replicas[j] = ReplicaState{Node: r.Node, Role: r.Role, Serving: r.Serving, Answers: r.Answers, Quarantine: r.Quarantine}
		}
		stable.Partitions[i].Replicas = replicas
	}
	return stateVersion(stable), nil
}
