package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/subscription"
)

// deadLetterView is a dead letter as shown to users.
type deadLetterView struct {
	Topic      string         `json:"topic"`
	Partition  int32          `json:"partition"`
	Offset     int64          `json:"offset"`
	Timestamp  rest.Timestamp `json:"timestamp,omitzero"`
	Reason     string         `json:"reason"`
	Message    string         `json:"message"`
	At         rest.Timestamp `json:"at"`
	KeyBytes   int            `json:"key_bytes"`
	ValueBytes int            `json:"value_bytes"`
}

type deadLetterList struct {
	Letters []deadLetterView `json:"dead_letters"`
	Next    string           `json:"next,omitempty"` // value of the parameter after for the next page
	Silent  []string         `json:"silent_nodes,omitempty"`
}

// deadLetterRecord is a dead letter with its contents.
type deadLetterRecord struct {
	recordView
	Reason  string         `json:"reason"`
	Message string         `json:"message"`
	At      rest.Timestamp `json:"at"`
}

// deadLetterResult is the outcome of an operation on the dead letters of a subscription.
type deadLetterResult struct {
	Done   int                 `json:"done"`
	Failed int                 `json:"failed"`
	Errors []deadLetterFailure `json:"errors,omitempty"`
	Next   string              `json:"next,omitempty"`
	Silent []string            `json:"silent_nodes,omitempty"`
}

type deadLetterFailure struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Message   string `json:"message"`
}

const (
	// defaultLetters and maxLetters bound the dead letters of a page.
	defaultLetters = 100
	maxLetters     = 1000
	// maxLetterErrors bounds the errors that a response lists.
	maxLetterErrors = 10
)

func viewDeadLetter(l *subscription.DeadLetter) deadLetterView {
	return deadLetterView{
		Topic: l.Topic, Partition: l.Partition, Offset: l.Offset, Timestamp: optionalTime(l.Timestamp), Reason: string(l.Reason), Message: l.Message,
		At: rest.TimestampOf(l.At), KeyBytes: l.KeySize, ValueBytes: l.ValueSize,
	}
}

// lettersOf reads a page of the dead letters of the subscription in the path. next is empty if it is
// the last one.
func (s *Server) lettersOf(c echo.Context, standard int) (id string, letters []subscription.DeadLetter, next string, silent []string, err error) {
	sub, err := s.subscriptionOf(c)
	if err != nil {
		return "", nil, "", nil, err
	}
	limit := standard
	if text := c.QueryParam("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxLetters {
			return "", nil, "", nil, rest.InvalidField("limit", fmt.Errorf("expected a number from 1 to %d", maxLetters))
		}
	}
	after, err := parsePlace(sub.ID, c.QueryParam("after"))
	if err != nil {
		return "", nil, "", nil, rest.InvalidField("after", err)
	}
	letters, silent = s.cfg.Streams.DeadLetters(c.Request().Context(), sub.ID, after, limit+1)
	if len(letters) > limit {
		letters = letters[:limit]
		last := &letters[limit-1]
		next = fmt.Sprintf("%s/%d/%d", last.Topic, last.Partition, last.Offset)
	}
	return sub.ID, letters, next, silent, nil
}

// parsePlace parses topic/partition/offset; nil if it is empty.
func parsePlace(id, text string) (*subscription.RecordID, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, "/")
	malformed := errors.New("expected topic/partition/offset, as `next` of the previous page has it")
	if len(parts) != 3 {
		return nil, malformed
	}
	partition, err1 := strconv.ParseInt(parts[1], 10, 32)
	offset, err2 := strconv.ParseInt(parts[2], 10, 64)
	if err1 != nil || err2 != nil || partition < 0 || offset < 0 || parts[0] == "" {
		return nil, malformed
	}
	return &subscription.RecordID{Subscription: id, Topic: parts[0], Partition: int32(partition), Offset: offset}, nil
}

func (s *Server) listDeadLetters(c echo.Context) error {
	_, letters, next, silent, err := s.lettersOf(c, defaultLetters)
	if err != nil {
		return err
	}
	views := make([]deadLetterView, len(letters))
	for i := range letters {
		views[i] = viewDeadLetter(&letters[i])
	}
	return rest.Respond(c, http.StatusOK, deadLetterList{views, next, silent})
}

func (s *Server) getDeadLetter(c echo.Context) error {
	id, err := s.recordOf(c)
	if err != nil {
		return err
	}
	letter, err := s.cfg.Streams.DeadLetter(c.Request().Context(), id)
	if err != nil {
		return deadLetterError(id, err)
	}
	return rest.Respond(c, http.StatusOK, deadLetterRecord{viewRecord(&letter.Record), string(letter.Reason), letter.Message, rest.TimestampOf(letter.At)})
}

func deadLetterError(id subscription.RecordID, err error) error {
	at := fmt.Sprintf("the record at offset %d of partition %d of %s", id.Offset, id.Partition, id.Topic)
	switch {
	case errors.Is(err, subscription.ErrNoDeadLetter):
		return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("%s is not a dead letter; GET /subscriptions/%s/dead-letters lists them", at, id.Subscription)}
	case errors.Is(err, subscription.ErrUndeliverable):
		return &rest.Error{Status: http.StatusConflict, Message: fmt.Sprintf("%s: %v. Change the subscription, or drop the record", at, err)}
	case errors.Is(err, subscription.ErrNotRead):
		return &rest.Error{Status: http.StatusServiceUnavailable, Retry: true, Message: fmt.Sprintf("no node leads the partition that stores %s at the moment; retry later", at)}
	}
	return &rest.Error{Status: http.StatusServiceUnavailable, Retry: true, Message: fmt.Sprintf("%s remains a dead letter: %v", at, err)}
}

// onEachDeadLetter returns a handler that applies an operation to the dead letters of a subscription, a
// page at a time.
func (s *Server) onEachDeadLetter(do func(context.Context, subscription.RecordID) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		sub, letters, next, silent, err := s.lettersOf(c, defaultLetters)
		if err != nil {
			return err
		}
		result := deadLetterResult{Next: next, Silent: silent}
		for i := range letters {
			l := &letters[i]
			id := subscription.RecordID{Subscription: sub, Topic: l.Topic, Partition: l.Partition, Offset: l.Offset}
			err := do(c.Request().Context(), id)
			if err == nil || errors.Is(err, subscription.ErrNoDeadLetter) {
				result.Done++
				continue
			}
			if result.Failed++; len(result.Errors) < maxLetterErrors {
				result.Errors = append(result.Errors, deadLetterFailure{l.Topic, l.Partition, l.Offset, err.Error()})
			}
		}
		return rest.Respond(c, http.StatusOK, result)
	}
}
