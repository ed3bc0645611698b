package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"platform/internal/config"
	"platform/internal/httpserver"
)

const (
	// healthTimeout bounds a health check.
	healthTimeout = 3 * time.Second
	// maxReason bounds the bytes of a response that are printed.
	maxReason = 4 << 10
)

const healthUsage = `Asks the server on this machine whether it should get requests. The exit status is 0
if it should, for health checks of containers that have no other program.

Usage: platform-server health [flags of the server]

The address is derived from the server's configuration file, environment and flags: admin.bind-ip and admin.bind-port, or admin.bind-address.
`

// checkHealth requests the health of the server with this configuration.
func checkHealth(ctx context.Context, args, environ []string) error {
	loaded, err := config.Load(args, environ)
	if err != nil {
		return err
	}
	if loaded.Options.Help {
		fmt.Print(healthUsage)
		return nil
	}
	admin := &loaded.Config.Admin
	scheme, secure := "http", &tls.Config{InsecureSkipVerify: true} //nolint:gosec // this machine, under an address that the certificate need not name
	if admin.TLS.Enabled() {
		scheme = "https"
		if admin.TLS.RequireClientCert { // that of the server will do if its authority is trusted for clients
			pair, err := tls.LoadX509KeyPair(admin.TLS.CertFile, admin.TLS.KeyFile)
			if err != nil {
				return fmt.Errorf("read the certificate of the server: %w", err)
			}
			secure.Certificates = []tls.Certificate{pair}
		}
	}
	url := scheme + "://" + reachable(admin.Address()) + "/health"
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("request %s: %w", url, err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: secure}} // no proxy
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("the server does not respond: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	var reason struct{ Message string }
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxReason))
	if json.Unmarshal(body, &reason) != nil || reason.Message == "" {
		reason.Message = resp.Status
	}
	if reason.Message == httpserver.RequiresTLS {
		return fmt.Errorf("the server at %s requires TLS: give this command the configuration of the server (--config-file, or its environment and flags)", url)
	}
	return fmt.Errorf("not ready: %s", reason.Message)
}

// reachable returns the address to connect to for a listen address: this machine's instead of
// the unspecified one.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
