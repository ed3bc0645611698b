package cli

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/term"
)

const deploymentsHint = "`platform deployments list` shows the registered deployments."

// deploymentID returns the id of a deployment that is named by its id or its address.
func (a *app) deploymentID(ctx context.Context, name string) (string, error) {
	if strings.HasPrefix(name, "dp_") {
		return name, nil
	}
	address := name
	if full, ok := command.CompleteAddress(name); ok && !strings.HasPrefix(name, "arn:") {
		address = full
	}
	all, _, err := a.Client.Deployments(ctx)
	if err != nil {
		return "", err
	}
	id, hint := "", deploymentsHint
	addresses := make([]string, len(all))
	for i, d := range all {
		addresses[i] = d.Address()
		if here, ok := loopback(address); ok {
			if there, ok := loopback(d.Address()); ok && here == there {
				hint = "One has the address " + term.Clean(d.Address()) + "; names of the same host are different addresses. " + deploymentsHint
			}
		}
		switch {
		case strings.TrimRight(d.Address(), "/") != strings.TrimRight(address, "/"):
		case id != "":
			return "", command.WithHint(fmt.Errorf("several deployments have the address %s", term.Clean(address)), "Give the id. "+deploymentsHint)
		default:
			id = d.ID
		}
	}
	if id == "" {
		return "", command.WithHint(fmt.Errorf("no deployment has the id or address %s", term.Clean(name)), command.Nearest(address, addresses, hint))
	}
	return id, nil
}

// hintAliases names deployments that are registered at another name of the same port on
// this host, such as localhost and 127.0.0.1.
func (a *app) hintAliases(ctx context.Context, address string) error {
	here, ok := loopback(address)
	if !ok {
		return nil
	}
	all, _, err := a.Client.Deployments(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		there, ok := loopback(d.Address())
		if !ok || here != there || strings.TrimRight(d.Address(), "/") == strings.TrimRight(address, "/") {
			continue
		}
		a.Hint.Box(
			"Deployment "+d.ID+" has the address "+term.Clean(d.Address())+", which is probably the same endpoint.",
			"Registering it under another name creates a second deployment. To replace the first one instead:",
			"platform deployments register "+term.Clean(d.Address())+" --force",
		)
	}
	return nil
}

// loopback returns an address with a name of this host replaced by localhost, and whether it
// has one.
func loopback(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", false
	}
	ip := net.ParseIP(u.Hostname())
	if u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", false
	}
	u.Host = "localhost:" + u.Port()
	return strings.TrimRight(u.String(), "/"), true
}
