package backend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"platform/internal/access"
	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/internal/version"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/service"
)

// Copy implements admin.Operator.
func (o *operator) Copy(ctx context.Context, id ids.Invocation, input *[]byte) (ids.Invocation, error) {
	old, err := o.router.Find(ctx, id)
	if err != nil {
		return ids.Invocation{}, operatorError(err)
	}
	if old.Target.Type == target.StateUpdate {
		return ids.Invocation{}, rejection(machine.Outcome{Code: machine.NotFound})
	}
	if old.Target.Type.Workflow() {
		return ids.Invocation{}, reject(http.StatusUnprocessableEntity, "invocations of workflows cannot be copied: a workflow runs once per key")
	}
	original, err := o.inputOf(ctx, id)
	if err != nil {
		return ids.Invocation{}, err
	}
	if input == nil {
		input = &original.value
	} else {
		original.headers = editedHeaders(access.From(ctx), original.headers, len(*input))
	}
	if err := o.acceptsInput(&old.Target, original.headers, *input); err != nil {
		return ids.Invocation{}, err
	}
	c := &machine.Invoke{
		ID: ids.NewInvocation(id.PartitionKey(), newUnique()), Target: old.Target, Input: journal.NewInput(original.headers, *input),
		Source: machine.Source{Kind: machine.FromRestart, Caller: id}, LimitKey: old.LimitKey, Trace: old.Trace, Retention: old.Retention,
		ServerVersion: version.Version(), Priority: old.Priority,
	}
	_, err = o.router.Send(ctx, c)
	if full, ok := errors.AsType[*routing.QueueFullError](err); ok {
		return ids.Invocation{}, reject(http.StatusTooManyRequests, "the invocation was not started: %v", full)
	}
	if err != nil {
		return ids.Invocation{}, operatorError(err)
	}
	return c.ID, nil
}

// editedHeaders returns the headers of an input that a principal has edited. Handlers must not take
// it for one that the original caller sent.
func editedHeaders(p *access.Principal, headers []journal.Header, length int) []journal.Header {
	principal := strings.ToLower(access.Header)
	headers = slices.DeleteFunc(headers, func(h journal.Header) bool { return h.Key == principal })
	for i := range headers {
		if headers[i].Key == "content-length" {
			headers[i].Value = strconv.Itoa(length)
		}
	}
	if name := p.HeaderValue(); name != "" {
		headers = append(headers, journal.Header{Key: principal, Value: name})
	}
	return headers
}

// storedInput is the first entry of a journal.
type storedInput struct {
	headers []journal.Header
	value   []byte
}

// inputOf reads the input of an invocation.
func (o *operator) inputOf(ctx context.Context, id ids.Invocation) (in storedInput, err error) {
	page, err := o.router.Owner(id).Scan(ctx, &partition.Scan{Table: partition.Journal, ID: id, Detail: partition.Whole, Keys: partition.AllKeys})
	if err != nil {
		return in, operatorError(routing.Explain(err))
	}
	if len(page.Rows) == 0 || page.Rows[0].Index != 0 || page.Rows[0].Entry.Type != journal.Input {
		return in, rejection(machine.Outcome{Code: machine.NoInput})
	}
	var m service.InputCommandMessage
	if err := m.UnmarshalVT(page.Rows[0].Entry.Payload); err != nil {
		return in, fmt.Errorf("decode the input of %s: %w", id, err)
	}
	for _, h := range m.Headers {
		in.headers = append(in.headers, journal.Header{Key: h.GetKey(), Value: h.GetValue()})
	}
	in.value = m.Value.GetContent()
	return in, nil
}

// acceptsInput returns why the handler would not accept an input from the ingress, nil if it would.
func (o *operator) acceptsInput(t *machine.Target, headers []journal.Header, input []byte) error {
	known := o.schemas().Services[t.Service]
	if known == nil {
		return reject(http.StatusBadRequest, "no deployment offers the service '%s'; register one", t.Service)
	}
	handler := known.Handler(t.Handler)
	if handler == nil {
		return reject(http.StatusBadRequest, "the service '%s' no longer has the handler '%s'", t.Service, t.Handler)
	}
	contentType, has := "", false
	for _, h := range headers {
		if h.Key == "content-type" {
			contentType, has = h.Value, true
		}
	}
	// Inputs of calls by other handlers have no content type.
	if !has && len(input) > 0 {
		return nil
	}
	if err := handler.Input.Check(contentType, has, input); err != nil {
		return reject(http.StatusBadRequest, "%v", err)
	}
	return nil
}
