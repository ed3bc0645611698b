package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/subscription"
)

// recordOf returns the ID of the record in the path.
func (s *Server) recordOf(c echo.Context) (id subscription.RecordID, err error) {
	sub, err := s.subscriptionOf(c)
	if err != nil {
		return id, err
	}
	partition, err := strconv.ParseInt(c.Param("topic_partition"), 10, 32)
	if err != nil || partition < 0 {
		return id, rest.InvalidField("topic_partition", errors.New("it is not a number from 0"))
	}
	offset, err := strconv.ParseInt(c.Param("offset"), 10, 64)
	if err != nil || offset < 0 {
		return id, rest.InvalidField("offset", errors.New("it is not a number from 0"))
	}
	topic := c.Param("topic")
	if !sub.Source.Matcher()(topic) {
		return id, &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("the subscription %s does not read the topic %s", sub.ID, rest.Shorten(topic))}
	}
	return subscription.RecordID{Subscription: sub.ID, Topic: topic, Partition: int32(partition), Offset: offset}, nil
}

func recordError(id subscription.RecordID, err error) error {
	switch {
	case errors.Is(err, subscription.ErrNotBlocked):
		return &rest.Error{Status: http.StatusConflict, Message: fmt.Sprintf("the record at offset %d of partition %d of %s does not block the subscription; GET /subscriptions/%s lists those that do",
			id.Offset, id.Partition, id.Topic, id.Subscription)}
	case errors.Is(err, subscription.ErrNotRead):
		return &rest.Error{Status: http.StatusServiceUnavailable, Retry: true, Message: fmt.Sprintf("no node reads partition %d of %s at the moment; retry later", id.Partition, id.Topic)}
	}
	return &rest.Error{Status: http.StatusServiceUnavailable, Retry: true, Message: fmt.Sprintf("the record was not changed, or not yet: %v", err)}
}

func (s *Server) getRecord(c echo.Context) error {
	id, err := s.recordOf(c)
	if err != nil {
		return err
	}
	record, err := s.cfg.Streams.Record(c.Request().Context(), id)
	switch {
	case errors.Is(err, subscription.ErrNoRecord):
		return &rest.Error{Status: http.StatusNotFound, Message: err.Error()}
	case err != nil && !errors.Is(err, subscription.ErrNotRead):
		return &rest.Error{Status: http.StatusServiceUnavailable, Retry: true, Message: fmt.Sprintf("the record could not be read: %v", err)}
	case err != nil:
		return recordError(id, err)
	}
	return rest.Respond(c, http.StatusOK, viewRecord(&record))
}

// onRecord returns a handler that applies an operation to the record or dead letter in the path.
// explain converts errors of the operation.
func (s *Server) onRecord(do func(context.Context, subscription.RecordID) error, explain func(subscription.RecordID, error) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := s.recordOf(c)
		if err != nil {
			return err
		}
		if err := do(c.Request().Context(), id); err != nil {
			return explain(id, err)
		}
		return rest.Done(c, http.StatusAccepted)
	}
}
