package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/internal/subscription"
	"platform/metadata"
)

// Streams are the event streams of the cluster: what the nodes that read them know, and the
// brokers.
type Streams interface {
	// Statuses returns the state of one subscription, or of all if id is empty, as the nodes
	// that respond in time report it. brief leaves out topic partitions.
	Statuses(ctx context.Context, id string, brief bool) StreamStatuses
	// ResolveStart asks the broker where a subscription starts.
	ResolveStart(ctx context.Context, s *subscription.Subscription, c *subscription.Cluster) ([]subscription.TopicStart, error)
	// Record returns a record that blocks its topic partition. Errors can be
	// subscription.ErrNotRead and ErrNotBlocked, also of the next methods.
	Record(ctx context.Context, id subscription.RecordID) (subscription.Record, error)
	// RetryRecord tries to deliver such a record again, SkipRecord leaves it out.
	RetryRecord(ctx context.Context, id subscription.RecordID) error
	SkipRecord(ctx context.Context, id subscription.RecordID) error
}

// StreamStatuses are the reports of nodes by subscription.
type StreamStatuses struct {
	ByID map[string][]subscription.Status
	// Silent lists the nodes that did not report, with the reason.
	Silent []string
}

// noStreams is used without event streams.
type noStreams struct{}

var errNoStreams = errors.New("this node does not read event streams")

func (noStreams) Statuses(context.Context, string, bool) StreamStatuses { return StreamStatuses{} }
func (noStreams) ResolveStart(context.Context, *subscription.Subscription, *subscription.Cluster) ([]subscription.TopicStart, error) {
	return nil, errNoStreams
}
func (noStreams) Record(context.Context, subscription.RecordID) (subscription.Record, error) {
	return subscription.Record{}, subscription.ErrNotRead
}
func (noStreams) RetryRecord(context.Context, subscription.RecordID) error {
	return subscription.ErrNotRead
}
func (noStreams) SkipRecord(context.Context, subscription.RecordID) error {
	return subscription.ErrNotRead
}

func (s *Server) createSubscription(c echo.Context) error {
	check, err := queryBool(c, "check")
	if err != nil {
		return err
	}
	var r subscriptionRequest
	if err := s.readJSON(c, &r); err != nil {
		return err
	}
	sub, err := r.create(s)
	if err != nil {
		return err
	}
	sub.ID = s.registry.NewSubscriptionID()
	notices, unresolved, err := s.prepareSubscription(c.Request().Context(), &sub, check)
	if err != nil {
		return err
	}
	sub, err = s.registry.CreateSubscription(c.Request().Context(), sub)
	if err != nil {
		return subscriptionError(err)
	}
	view := s.viewSubscription(&sub, StreamStatuses{}, false)
	view.Info = append(view.Info, notices...)
	if unresolved != nil {
		view.State, view.Message = subscription.Failed, unresolved.Error()
	}
	c.Response().Header().Set("Location", "subscriptions/"+sub.ID)
	return answer(c, http.StatusCreated, view)
}

// prepareSubscription validates a subscription and asks the broker where it starts. unresolved
// says why that is not known; with check, it is an error.
func (s *Server) prepareSubscription(ctx context.Context, sub *subscription.Subscription, check bool) (notices []notice, unresolved, err error) {
	cluster, known := s.kafkaCluster(sub.Cluster)
	if !known {
		return nil, nil, s.unknownCluster(sub.Cluster)
	}
	if sub.Start.Kind == 0 {
		sub.Start = subscription.DefaultStart(&cluster, sub)
	}
	if err := s.checkSink(sub.Sink); err != nil {
		return nil, nil, err
	}
	if err := sub.Check(); err != nil {
		return nil, nil, err
	}
	if _, err := subscription.ClientOf(&cluster, sub); err != nil {
		return nil, nil, err
	}
	for _, n := range subscription.Notices(sub.Properties) {
		notices = append(notices, notice{Message: n})
	}
	offsets, unresolved := s.cfg.Streams.ResolveStart(ctx, sub, &cluster)
	if unresolved != nil {
		if check {
			return nil, nil, errcode.New(errcode.META0009, "the subscription was not created, because the Kafka cluster %s did not tell where it starts: %v", sub.Cluster, unresolved)
		}
		return notices, unresolved, nil
	}
	sub.Offsets, sub.Resolved = offsets, true
	return notices, nil, nil
}

func (s *Server) unknownCluster(name string) error {
	var names []string
	for _, c := range s.kafkaClusters() {
		names = append(names, c.Name)
	}
	return errcode.New(errcode.META0009, "Kafka cluster '%s' not found. Available clusters: [%s]. Add one with POST /kafka-clusters or `platform kafka-clusters create`",
		name, strings.Join(names, ", ")).In("source")
}

// checkSink refuses handlers that are not registered.
func (s *Server) checkSink(sink subscription.Sink) error {
	schemas := s.registry.Schemas()
	service := schemas.Services[sink.Service]
	if service == nil {
		return errcode.New(errcode.META0009, "there is no service %q; register its deployment first%s", sink.Service, alternativesOf(sink.Service, sortedKeys(schemas.Services))).In("sink")
	}
	if service.Handler(sink.Handler) == nil {
		var names []string
		for _, h := range service.Handlers {
			names = append(names, h.Name)
		}
		return errcode.New(errcode.META0009, "service %s has no handler %q%s", sink.Service, sink.Handler, alternatives(sink.Handler, "handlers", names)).In("sink")
	}
	return nil
}

func alternativesOf(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	return alternatives(name, "services", known)
}

func (s *Server) listSubscriptions(c echo.Context) error {
	list, _ := s.registry.Subscriptions()
	statuses := s.cfg.Streams.Statuses(c.Request().Context(), "", false)
	views := []subscriptionView{}
	source, sink := c.QueryParam("source"), c.QueryParam("sink")
	for i := range list {
		sub := &list[i]
		if source != "" && source != sub.Source.String() || sink != "" && sink != sub.Sink.String() {
			continue
		}
		view := s.viewSubscription(sub, statuses, false)
		views = append(views, view)
	}
	return answer(c, http.StatusOK, subscriptionList{views, statuses.Silent})
}

func (s *Server) getSubscription(c echo.Context) error {
	sub, err := s.subscriptionOf(c)
	if err != nil {
		return err
	}
	return s.answerSubscription(c, http.StatusOK, &sub)
}

// answerSubscription answers with a subscription and its topic partitions.
func (s *Server) answerSubscription(c echo.Context, status int, sub *subscription.Subscription, notices ...notice) error {
	view := s.viewSubscription(sub, s.cfg.Streams.Statuses(c.Request().Context(), sub.ID, false), true)
	view.Info = append(view.Info, notices...)
	return answer(c, status, view)
}

// subscriptionOf returns the subscription in the path.
func (s *Server) subscriptionOf(c echo.Context) (subscription.Subscription, error) {
	id := c.Param("subscription")
	if err := ids.CheckSubscription(id); err != nil {
		return subscription.Subscription{}, invalidField("subscription", err)
	}
	list, _ := s.registry.Subscriptions()
	at, known := slices.BinarySearchFunc(list, id, func(s subscription.Subscription, id string) int { return strings.Compare(s.ID, id) })
	if !known {
		return subscription.Subscription{}, noSubscription(id)
	}
	return list[at], nil
}

func noSubscription(id string) *failure {
	return &failure{status: http.StatusNotFound, message: fmt.Sprintf("The requested subscription '%s' does not exist", id)}
}

// subscriptionError words the errors of changes.
func subscriptionError(err error) error {
	switch {
	case errors.Is(err, metadata.ErrSubscriptionNotFound), errors.Is(err, metadata.ErrClusterNotFound):
		return &failure{status: http.StatusNotFound, message: err.Error()}
	case errors.Is(err, metadata.ErrTooManySubscriptions), errors.Is(err, metadata.ErrTooManyClusters),
		errors.Is(err, metadata.ErrClusterInUse), errors.Is(err, metadata.ErrClusterExists):
		return &failure{status: http.StatusConflict, message: err.Error()}
	}
	return err
}

// changeSubscription changes the subscription in the path and answers with it.
func (s *Server) changeSubscription(c echo.Context, status int, change func(subscription.Subscription) (subscription.Subscription, error), notices ...notice) error {
	sub, err := s.subscriptionOf(c)
	if err != nil {
		return err
	}
	sub, err = s.registry.ChangeSubscription(c.Request().Context(), sub.ID, change)
	if err != nil {
		return subscriptionError(err)
	}
	return s.answerSubscription(c, status, &sub, notices...)
}

var errDraining = &failure{status: http.StatusConflict, message: "the subscription is being deleted"}

func (s *Server) patchSubscription(c echo.Context) error {
	var r subscriptionRequest
	if err := s.readJSON(c, &r); err != nil {
		return err
	}
	switch {
	case r.Source != nil || r.Topics != nil || r.TopicPattern != nil:
		return unprocessable("the source of a subscription cannot be changed; create another subscription")
	case r.Start != nil:
		return unprocessable("the field 'start' cannot be changed; use POST /subscriptions/{subscription}/seek")
	}
	var notices []notice
	return s.changeSubscription(c, http.StatusOK, func(sub subscription.Subscription) (subscription.Subscription, error) {
		if sub.Draining {
			return sub, errDraining
		}
		if err := r.edit(&sub); err != nil {
			return sub, err
		}
		if r.Sink != nil {
			if err := s.checkSink(sub.Sink); err != nil {
				return sub, err
			}
		}
		if cluster, known := s.kafkaCluster(sub.Cluster); known {
			if _, err := subscription.ClientOf(&cluster, &sub); err != nil {
				return sub, err
			}
		}
		return sub, nil
	}, notices...)
}

func (s *Server) pauseSubscription(c echo.Context) error {
	request, err := pauseRequest(c, c.QueryParam("reason"))
	if err != nil {
		return err
	}
	return s.changeSubscription(c, http.StatusOK, func(sub subscription.Subscription) (subscription.Subscription, error) {
		switch {
		case sub.Draining:
			return sub, errDraining
		case sub.Paused == nil:
			sub.Paused = &subscription.Pause{By: request.By, Reason: request.Reason, At: s.cfg.Now()}
		}
		return sub, nil
	})
}

func (s *Server) resumeSubscription(c echo.Context) error {
	return s.changeSubscription(c, http.StatusOK, func(sub subscription.Subscription) (subscription.Subscription, error) {
		if sub.Draining {
			return sub, errDraining
		}
		sub.Paused = nil
		return sub, nil
	})
}

// seekRequest is the body of POST /subscriptions/:subscription/seek.
type seekRequest struct {
	Start startText `json:"start"`
}

func (s *Server) seekSubscription(c echo.Context) error {
	restart, err := queryBool(c, "restart")
	if err != nil {
		return err
	}
	var r seekRequest
	if err := s.readJSON(c, &r); err != nil {
		return err
	}
	sub, err := s.subscriptionOf(c)
	if err != nil {
		return err
	}
	if len(r.Start) == 0 {
		return unprocessable("the field 'start' is missing: latest, earliest, group, or an object with a timestamp or offsets")
	}
	start, err := parseStart(r.Start, &sub.Source)
	if err != nil {
		return err
	}
	cluster, known := s.kafkaCluster(sub.Cluster)
	if !known {
		return s.unknownCluster(sub.Cluster)
	}
	wanted := sub
	wanted.Start, wanted.Offsets, wanted.Resolved = start, nil, false
	if err := wanted.Check(); err != nil {
		return err
	}
	offsets, err := s.cfg.Streams.ResolveStart(c.Request().Context(), &wanted, &cluster)
	if err != nil {
		return errcode.New(errcode.META0009, "the start was not changed, because the Kafka cluster %s did not tell the offsets: %v", sub.Cluster, err)
	}
	return s.changeSubscription(c, http.StatusOK, func(sub subscription.Subscription) (subscription.Subscription, error) {
		switch {
		case sub.Draining:
			return sub, errDraining
		case sub.Paused == nil && !restart:
			return sub, &failure{status: http.StatusConflict, message: "the subscription is not paused; pause it first, or repeat the request with ?restart=true. " +
				"Records that were delivered are delivered again if the new start is before them"}
		}
		sub.Start, sub.Offsets, sub.Resolved = start, offsets, true
		sub.Incarnation++
		return sub, nil
	})
}

func (s *Server) deleteSubscription(c echo.Context) error {
	force, err := queryBool(c, "force")
	if err != nil {
		return err
	}
	sub, err := s.subscriptionOf(c)
	if err != nil {
		return err
	}
	if force {
		if err := s.registry.RemoveSubscription(c.Request().Context(), sub.ID); err != nil {
			return err
		}
		return done(c, http.StatusAccepted)
	}
	_, err = s.registry.ChangeSubscription(c.Request().Context(), sub.ID, func(sub subscription.Subscription) (subscription.Subscription, error) {
		sub.Draining = true
		return sub, nil
	})
	if err != nil {
		return subscriptionError(err)
	}
	return done(c, http.StatusAccepted)
}

// recordOf returns the record in the path.
func (s *Server) recordOf(c echo.Context) (id subscription.RecordID, err error) {
	sub, err := s.subscriptionOf(c)
	if err != nil {
		return id, err
	}
	partition, err := strconv.ParseInt(c.Param("topic_partition"), 10, 32)
	if err != nil || partition < 0 {
		return id, invalidField("topic_partition", errors.New("it is not a number from 0"))
	}
	offset, err := strconv.ParseInt(c.Param("offset"), 10, 64)
	if err != nil || offset < 0 {
		return id, invalidField("offset", errors.New("it is not a number from 0"))
	}
	topic := c.Param("topic")
	if !sub.Source.Matcher()(topic) {
		return id, &failure{status: http.StatusNotFound, message: fmt.Sprintf("the subscription %s does not read the topic %q", sub.ID, topic)}
	}
	return subscription.RecordID{Subscription: sub.ID, Topic: topic, Partition: int32(partition), Offset: offset}, nil
}

func recordError(id subscription.RecordID, err error) error {
	switch {
	case errors.Is(err, subscription.ErrNotBlocked):
		return &failure{status: http.StatusConflict, message: fmt.Sprintf("the record at offset %d of partition %d of %s does not block the subscription; GET /subscriptions/%s lists those that do",
			id.Offset, id.Partition, id.Topic, id.Subscription)}
	case errors.Is(err, subscription.ErrNotRead):
		return &failure{status: http.StatusServiceUnavailable, retry: true, message: fmt.Sprintf("no node reads partition %d of %s at the moment; retry later", id.Partition, id.Topic)}
	}
	return &failure{status: http.StatusServiceUnavailable, retry: true, message: fmt.Sprintf("the record was not changed: %v", err)}
}

func (s *Server) getRecord(c echo.Context) error {
	id, err := s.recordOf(c)
	if err != nil {
		return err
	}
	record, err := s.cfg.Streams.Record(c.Request().Context(), id)
	if err != nil {
		return recordError(id, err)
	}
	return answer(c, http.StatusOK, viewRecord(&record))
}

// onRecord carries out an operation on the record in the path.
func (s *Server) onRecord(do func(context.Context, subscription.RecordID) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := s.recordOf(c)
		if err != nil {
			return err
		}
		if err := do(c.Request().Context(), id); err != nil {
			return recordError(id, err)
		}
		return done(c, http.StatusAccepted)
	}
}
