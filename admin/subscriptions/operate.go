package subscriptions

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/subscription"
)

func (s *Server) pauseSubscription(c echo.Context) error {
	reason := c.QueryParam("reason")
	if err := rest.CheckReason(reason); err != nil {
		return err
	}
	return s.changeSubscription(c, http.StatusOK, func(sub subscription.Subscription) (subscription.Subscription, error) {
		switch {
		case sub.Draining:
			return sub, errDraining
		case sub.Paused == nil:
			sub.Paused = &subscription.Pause{By: rest.Requester(c), Reason: reason, At: s.cfg.Now()}
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
	restart, err := rest.QueryBool(c, "restart")
	if err != nil {
		return err
	}
	var r seekRequest
	if err := s.cfg.Bodies.ReadJSON(c, &r); err != nil {
		return err
	}
	sub, err := s.subscriptionOf(c)
	if err != nil {
		return err
	}
	if len(r.Start) == 0 {
		return rest.Unprocessable("the field 'start' is missing: latest, earliest, group, or an object with a timestamp or offsets")
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
	if err != nil && invalidStart(err) {
		return err
	}
	if err != nil {
		return seekFailure(err, sub.Cluster)
	}
	return s.changeSubscription(c, http.StatusOK, func(sub subscription.Subscription) (subscription.Subscription, error) {
		switch {
		case sub.Draining:
			return sub, errDraining
		case sub.Paused == nil && !restart:
			return sub, &rest.Error{Status: http.StatusConflict, Message: "the subscription is not paused; pause it first, or repeat the request with ?restart=true. " +
				"Records that were delivered are delivered again if the new start is before them"}
		}
		sub.Start, sub.Offsets, sub.Resolved = start, offsets, true
		sub.Incarnation++
		return sub, nil
	})
}

// seekFailure converts an error of ResolveStart. The subscription and its cluster exist, so brokers
// that cannot be reached are not an error of the request.
func seekFailure(err error, cluster string) error {
	text := fmt.Sprintf("the start was not changed, because the Kafka cluster %s did not return the offsets: %v", cluster, err)
	var broker *subscription.BrokerError
	if errors.As(err, &broker) && broker.Reason == subscription.BrokerUnreachable {
		return &rest.Error{Status: http.StatusServiceUnavailable, Retry: true, Message: text + "; retry later"}
	}
	return startFailure(err, "%s", text)
}

func (s *Server) deleteSubscription(c echo.Context) error {
	force, err := rest.QueryBool(c, "force")
	if err != nil {
		return err
	}
	sub, err := s.subscriptionOf(c)
	if err != nil {
		return err
	}
	switch {
	case force:
		if err := s.registry.RemoveSubscription(c.Request().Context(), sub.ID); err != nil {
			return err
		}
		return rest.Done(c, http.StatusAccepted)
	case sub.Draining: // its time for that began with the first request
		rest.ChangedNothing(c)
		return rest.Done(c, http.StatusAccepted)
	}
	_, err = s.registry.ChangeSubscription(c.Request().Context(), sub.ID, func(sub subscription.Subscription) (subscription.Subscription, error) {
		sub.Draining = true
		return sub, nil
	})
	if err != nil {
		return subscriptionError(err)
	}
	return rest.Done(c, http.StatusAccepted)
}
