package cli

import (
	"context"
	"net/http"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
)

// serviceNotFound adds to the error that a service does not exist which one has a similar name.
func (a *app) serviceNotFound(ctx context.Context, err error, name, hint string) error {
	if command.HintNotFound(err, "") == err { //nolint:errorlint // other errors are returned unchanged
		return err
	}
	return command.HintNotFound(err, a.nearestService(ctx, name, hint))
}

// nearestService precedes a hint with the service that has a similar name, if there is one.
func (a *app) nearestService(ctx context.Context, name, hint string) string {
	services, _, err := a.Client.Services(ctx)
	if err != nil {
		return hint
	}
	names := make([]string, len(services))
	for i := range services {
		names[i] = services[i].Name
	}
	return command.Nearest(name, names, hint)
}

// deploymentNotFound adds a hint to the error of an unknown or malformed id.
func deploymentNotFound(err error) error {
	if client.HasStatus(err, http.StatusBadRequest) {
		return command.WithHint(err, deploymentsHint)
	}
	return command.HintNotFound(err, deploymentsHint)
}

// tokenNotFound adds to the error that a token does not exist which one has a similar name.
func (a *app) tokenNotFound(ctx context.Context, err error, name string) error {
	if !client.IsNotFound(err) {
		return err
	}
	tokens, _, listed := a.Client.Tokens(ctx)
	if listed != nil {
		return err
	}
	names := make([]string, len(tokens))
	for i := range tokens {
		names[i] = tokens[i].Name
	}
	return command.HintNotFound(err, command.Nearest(name, names, "`platform tokens list` shows the tokens."))
}
