package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"platform/deploy/process"
)

// address is where a port is, as seen from this machine.
func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// checkPorts says which port is taken before anything is started.
func (o options) checkPorts() error {
	for _, p := range []struct {
		port       int
		what, flag string
	}{
		{o.ingressPort, "calling services", "-ingress-port"},
		{o.adminPort, "the admin API", "-admin-port"},
		{o.nodePort, "other nodes", "-node-port"},
		{o.servicePort, "the sample service", "-service-port"},
	} {
		l, err := net.Listen("tcp", address(p.port))
		if err != nil {
			return fmt.Errorf("port %d, meant for %s, is not free (%w); stop what uses it or choose another: make quickstart ARGS='%s N'",
				p.port, p.what, err, p.flag)
		}
		l.Close()
	}
	return nil
}

// register makes the server discover what is behind an endpoint and returns one
// line for each service found.
func register(ctx context.Context, url, body string) ([]string, error) {
	raw, err := process.Request(ctx, http.MethodPost, url, body)
	if err != nil {
		return nil, err
	}
	var deployment struct {
		Services []struct {
			Name     string `json:"name"`
			Type     string `json:"ty"`
			Handlers []struct {
				Name string `json:"name"`
			} `json:"handlers"`
		} `json:"services"`
	}
	if err := json.Unmarshal(raw, &deployment); err != nil {
		return nil, fmt.Errorf("answer of %s: %w", url, err)
	}
	var lines []string
	for _, s := range deployment.Services {
		var handlers []string
		for _, h := range s.Handlers {
			handlers = append(handlers, h.Name)
		}
		lines = append(lines, fmt.Sprintf("found %s %s: %s", s.Type, s.Name, strings.Join(handlers, ", ")))
	}
	return lines, nil
}

// call calls a handler and returns its answer with the time it took.
func call(ctx context.Context, url, body string) (string, error) {
	begin := time.Now()
	raw, err := process.Request(ctx, http.MethodPost, url, body)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s  (%s; the handler sleeps 200ms)", raw, time.Since(begin).Round(time.Millisecond)), nil
}
