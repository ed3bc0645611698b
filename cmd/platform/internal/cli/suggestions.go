package cli

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/suggest"
)

// maxCandidates bounds the names that a misspelled one is compared with.
const maxCandidates = 1000

// nearest precedes a hint with the closest of the names that would have been found.
func nearest(name string, candidates []string, hint string) string {
	near := suggest.Nearest(name, candidates[:min(len(candidates), maxCandidates)])
	if near == "" || near == name {
		return hint
	}
	return "Did you mean " + term.Clean(near) + "? " + hint
}

// serviceNotFound adds to the error that a service does not exist which one has a similar name.
func (a *app) serviceNotFound(ctx context.Context, err error, name, hint string) error {
	if hintNotFound(err, "") == err { //nolint:errorlint // other errors are returned unchanged
		return err
	}
	return hintNotFound(err, a.nearestService(ctx, name, hint))
}

// nearestService precedes a hint with the service that has a similar name, if there is one.
func (a *app) nearestService(ctx context.Context, name, hint string) string {
	services, _, err := a.client.Services(ctx)
	if err != nil {
		return hint
	}
	names := make([]string, len(services))
	for i := range services {
		names[i] = services[i].Name
	}
	return nearest(name, names, hint)
}

// subscriptionNotFound adds to the error of an unknown or malformed id which subscription reads the
// topic, or calls the service, of that name.
func (a *app) subscriptionNotFound(ctx context.Context, err error, name string) error {
	response, ok := errors.AsType[*client.APIError](err)
	if !ok || response.Status != http.StatusNotFound && response.Status != http.StatusBadRequest {
		return err
	}
	hint := subscriptionHint
	list, _, listed := a.client.Subscriptions(ctx, "", "")
	if listed == nil {
		names := make(map[string]string)
		var candidates []string
		for _, sub := range list.Subscriptions {
			topic := sub.Source[strings.LastIndexByte(sub.Source, '/')+1:]
			_, sink, _ := strings.Cut(sub.Sink, "://")
			for _, candidate := range []string{topic, sink, service(sink)} {
				names[candidate] = sub.ID + " (" + sub.Source + " to " + sub.Sink + ")"
				candidates = append(candidates, candidate)
			}
		}
		if near := suggest.Nearest(name, candidates[:min(len(candidates), maxCandidates)]); near != "" {
			hint = "Did you mean " + term.Clean(names[near]) + "? " + hint
		}
	}
	return &hintedError{err, hint}
}

// deploymentNotFound adds a hint to the error of an unknown or malformed id.
func deploymentNotFound(err error) error {
	if client.HasStatus(err, http.StatusBadRequest) {
		return &hintedError{err, deploymentsHint}
	}
	return hintNotFound(err, deploymentsHint)
}

// tokenNotFound adds to the error that a token does not exist which one has a similar name.
func (a *app) tokenNotFound(ctx context.Context, err error, name string) error {
	if !client.IsNotFound(err) {
		return err
	}
	tokens, _, listed := a.client.Tokens(ctx)
	if listed != nil {
		return err
	}
	names := make([]string, len(tokens))
	for i := range tokens {
		names[i] = tokens[i].Name
	}
	return hintNotFound(err, nearest(name, names, "`platform tokens list` shows the tokens."))
}
