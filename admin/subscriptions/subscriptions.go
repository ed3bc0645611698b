package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/internal/subscription"
	"platform/metadata"
)

// Registry stores event subscriptions and the Kafka clusters that are not in the
// configuration.
type Registry interface {
	// Schemas returns the registered services, which are the sinks of subscriptions.
	Schemas() *metadata.Schemas
	// Subscriptions returns the event subscriptions, sorted by ID, and a channel that is closed
	// when they or the Kafka clusters change.
	Subscriptions() ([]subscription.Subscription, <-chan struct{})
	NewSubscriptionID() string
	CreateSubscription(context.Context, subscription.Subscription) (subscription.Subscription, error)
	ChangeSubscription(ctx context.Context, id string, change func(subscription.Subscription) (subscription.Subscription, error)) (subscription.Subscription, error)
	RemoveSubscription(ctx context.Context, id string) error
	// KafkaClusters returns the clusters created by the API, sorted by name.
	KafkaClusters() []subscription.Cluster
	CreateKafkaCluster(context.Context, subscription.Cluster) (subscription.Cluster, error)
	ChangeKafkaCluster(ctx context.Context, name string, change func(map[string]string) (map[string]string, error)) (subscription.Cluster, error)
	DeleteKafkaCluster(ctx context.Context, name string, force bool) error
}

func (s *Server) createSubscription(c echo.Context) error {
	check, err := rest.QueryBool(c, "check")
	if err != nil {
		return err
	}
	var r subscriptionRequest
	if err := s.cfg.Bodies.ReadJSON(c, &r); err != nil {
		return err
	}
	sub, err := r.create()
	if err != nil {
		return err
	}
	if err := s.checkFlowControl(&r); err != nil {
		return err
	}
	from := sub.Source.String() + " " + sub.Sink.String()
	rest.Concerns(c, from) // a subscription that is rejected has no ID
	sub.ID = s.registry.NewSubscriptionID()
	notices, unresolved, err := s.prepareSubscription(c.Request().Context(), &sub, check)
	if err != nil {
		return err
	}
	if err := s.requireKeyForProperties(c.Request().Context(), sub.Properties); err != nil {
		return err
	}
	rest.Concerns(c, sub.ID+" "+from)
	if sub, err = s.storeSubscription(c.Request().Context(), sub); err != nil {
		return subscriptionError(err)
	}
	view := s.viewSubscription(&sub, Statuses{}, false)
	view.Info = append(view.Info, notices...)
	if unresolved != nil {
		view.State, view.Message = subscription.Failed, unresolved.Error()
	}
	c.Response().Header().Set("Location", "subscriptions/"+sub.ID)
	return rest.Respond(c, http.StatusCreated, view)
}

// storeSubscription stores a new subscription if there may be another one. Requests to several
// nodes at the same moment can together exceed the limit of the configuration, but never
// subscription.MaxSubscriptions.
func (s *Server) storeSubscription(ctx context.Context, sub subscription.Subscription) (subscription.Subscription, error) {
	s.creating.Lock()
	defer s.creating.Unlock()
	list, _ := s.registry.Subscriptions()
	if n, most := len(list), s.cfg.MaxSubscriptions; most > 0 && n >= most {
		return sub, errcode.New(errcode.META0021, "there are %d subscriptions, and admin.subscriptions-limit is %d; delete some, or raise the limit", n, most)
	}
	return s.registry.CreateSubscription(ctx, sub)
}

// storeKafkaCluster is storeSubscription for a Kafka cluster.
func (s *Server) storeKafkaCluster(ctx context.Context, cluster subscription.Cluster) (subscription.Cluster, error) {
	s.creating.Lock()
	defer s.creating.Unlock()
	if n, most := len(s.registry.KafkaClusters()), s.cfg.MaxKafkaClusters; most > 0 && n >= most {
		return cluster, errcode.New(errcode.META0021, "there are %d Kafka clusters, and admin.kafka-clusters-limit is %d; delete some, or raise the limit", n, most)
	}
	return s.registry.CreateKafkaCluster(ctx, cluster)
}

// checkFlowControl rejects a scope while no invocation can have one: each record would block.
func (s *Server) checkFlowControl(r *subscriptionRequest) error {
	if r.Scope == nil || *r.Scope == "" || s.cfg.FlowControl {
		return nil
	}
	return errcode.New(errcode.META0009, "scope: flow control is off on this cluster: see experimental-enable-vqueues").In("scope")
}

// prepareSubscription validates a subscription and resolves its start at the broker. If the broker
// is unavailable, unresolved is the reason; with check, it returns an error instead.
func (s *Server) prepareSubscription(ctx context.Context, sub *subscription.Subscription, check bool) (notices []rest.Notice, unresolved, err error) {
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
	notices = propertyNotices(sub.Properties)
	offsets, unresolved := s.cfg.Streams.ResolveStart(ctx, sub, &cluster)
	var broker *subscription.BrokerError
	if errors.As(unresolved, &broker) && broker.Reason == subscription.TopicMissing && !check && sub.Start.Kind != subscription.StartOffsets {
		sub.Offsets, sub.Resolved = offsets, true
		return notices, unresolved, nil
	}
	if unresolved != nil {
		if invalidStart(unresolved) {
			return nil, nil, unresolved
		}
		if check {
			return nil, nil, startFailure(unresolved, "the subscription was not created, because the Kafka cluster %s did not return its start: %v", sub.Cluster, unresolved)
		}
		return notices, unresolved, nil
	}
	sub.Offsets, sub.Resolved = offsets, true
	return notices, nil, nil
}

// invalidStart reports whether an error of ResolveStart is about the request rather than the brokers.
func invalidStart(err error) bool {
	code, _ := errcode.Of(err)
	return code == errcode.META0009
}

// startFailure converts an error of ResolveStart about the brokers: META0009 if the request or the
// definition of the cluster may be wrong, otherwise a failure that passes.
func startFailure(err error, format string, args ...any) error {
	var broker *subscription.BrokerError
	if errors.As(err, &broker) {
		switch broker.Reason {
		case subscription.TopicMissing, subscription.NotAuthorized, subscription.InvalidProperties, subscription.BrokerUnreachable:
		default:
			return &rest.Error{Status: http.StatusServiceUnavailable, Retry: true, Message: fmt.Sprintf(format, args...) + "; retry later"}
		}
	}
	return errcode.New(errcode.META0009, format, args...)
}

// propertyNotices reports the properties that have no effect.
func propertyNotices(properties map[string]string) (notices []rest.Notice) {
	for _, n := range subscription.Notices(properties) {
		notices = append(notices, rest.Notice{Message: n})
	}
	return notices
}

func (s *Server) unknownCluster(name string) error {
	var names []string
	for _, c := range s.kafkaClusters() {
		names = append(names, c.Name)
	}
	available := "There are no Kafka clusters"
	if len(names) > 0 {
		available = "Available clusters: " + strings.Join(names, ", ")
	}
	return errcode.New(errcode.META0009, "Kafka cluster '%s' not found. %s. Add one with POST /kafka-clusters or `platform kafka-clusters create`", name, available).In("source")
}

// checkSink returns an error if the handler is not registered.
func (s *Server) checkSink(sink subscription.Sink) error {
	schemas := s.registry.Schemas()
	service := schemas.Services[sink.Service]
	if service == nil {
		return errcode.New(errcode.META0009, "there is no service %q; register its deployment first%s", sink.Service, alternativesOf(sink.Service, slices.Sorted(maps.Keys(schemas.Services)))).In("sink")
	}
	if service.Handler(sink.Handler) == nil {
		var names []string
		for _, h := range service.Handlers {
			names = append(names, h.Name)
		}
		return errcode.New(errcode.META0009, "service %s has no handler %q%s", sink.Service, sink.Handler, rest.Alternatives(sink.Handler, "handlers", names)).In("sink")
	}
	return nil
}

func alternativesOf(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	return rest.Alternatives(name, "services", known)
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
	return rest.Respond(c, http.StatusOK, subscriptionList{views, statuses.Silent})
}

func (s *Server) getSubscription(c echo.Context) error {
	sub, err := s.subscriptionOf(c)
	if err != nil {
		return err
	}
	view := s.viewSubscription(&sub, s.cfg.Streams.Statuses(c.Request().Context(), sub.ID, false), true)
	view.Info = propertyNotices(sub.Properties)
	return rest.Respond(c, http.StatusOK, view)
}

// subscriptionOf returns the subscription in the path.
func (s *Server) subscriptionOf(c echo.Context) (subscription.Subscription, error) {
	id := c.Param("subscription")
	if err := ids.CheckSubscription(id); err != nil {
		return subscription.Subscription{}, rest.InvalidField("subscription", err)
	}
	list, _ := s.registry.Subscriptions()
	at, known := slices.BinarySearchFunc(list, id, func(s subscription.Subscription, id string) int { return strings.Compare(s.ID, id) })
	if !known {
		return subscription.Subscription{}, noSubscription(id)
	}
	rest.Concerns(c, list[at].Source.String()) // the path has only the ID
	return list[at], nil
}

func noSubscription(id string) *rest.Error {
	return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("The requested subscription '%s' does not exist", id)}
}

// subscriptionError converts errors of changes to failures.
func subscriptionError(err error) error {
	switch {
	case errors.Is(err, metadata.ErrSubscriptionNotFound), errors.Is(err, metadata.ErrClusterNotFound):
		return &rest.Error{Status: http.StatusNotFound, Message: err.Error()}
	case errors.Is(err, metadata.ErrTooManySubscriptions), errors.Is(err, metadata.ErrTooManyClusters):
		return errcode.New(errcode.META0021, "%w", err)
	case errors.Is(err, metadata.ErrClusterInUse), errors.Is(err, metadata.ErrClusterExists):
		return &rest.Error{Status: http.StatusConflict, Message: err.Error()}
	}
	return err
}

// changeSubscription changes the subscription in the path and responds with it, without what nodes
// report: that would be the state before the change.
func (s *Server) changeSubscription(c echo.Context, status int, change func(subscription.Subscription) (subscription.Subscription, error)) error {
	sub, err := s.subscriptionOf(c)
	if err != nil {
		return err
	}
	sub, err = s.registry.ChangeSubscription(c.Request().Context(), sub.ID, change)
	if err != nil {
		return subscriptionError(err)
	}
	view := s.viewSubscription(&sub, Statuses{}, false)
	view.Info = propertyNotices(sub.Properties)
	return rest.Respond(c, status, view)
}

var errDraining = &rest.Error{Status: http.StatusConflict, Message: "the subscription is being deleted"}

func (s *Server) patchSubscription(c echo.Context) error {
	var r subscriptionRequest
	if err := s.cfg.Bodies.ReadJSON(c, &r); err != nil {
		return err
	}
	switch {
	case r.Source != nil || r.Topics != nil || r.TopicPattern != nil:
		return rest.Unprocessable("the source of a subscription cannot be changed; create another subscription")
	case r.Start != nil:
		return rest.Unprocessable("the field 'start' cannot be changed; use POST /subscriptions/{subscription}/seek")
	}
	if err := s.checkFlowControl(&r); err != nil {
		return err
	}
	if r.Options != nil {
		if err := s.requireKeyForProperties(c.Request().Context(), *r.Options); err != nil {
			return err
		}
	}
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
	})
}
