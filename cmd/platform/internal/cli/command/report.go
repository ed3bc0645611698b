package command

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/errcode"
)

// Report prints why a command failed and what to do about it.
func (a *App) Report(err error) {
	switch {
	case errors.Is(err, term.ErrAborted):
		fmt.Fprintln(a.Err, "Not confirmed; nothing was done.")
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.Err, "Interrupted")
		if hinted, ok := errors.AsType[*hintedError](err); ok {
			fmt.Fprintln(a.Err, hinted.hint)
		}
	default:
		fmt.Fprintf(a.Err, "%s %s\n", a.Hint.Red("Error:"), term.Clean(err.Error()))
		if hint := HintFor(err); hint != "" {
			fmt.Fprintln(a.Err, hint)
		}
		a.mentionOtherLogin(err)
		if response, ok := errors.AsType[*client.APIError](err); ok {
			fmt.Fprintf(a.Err, "-> HTTP %d from %s %s\n", response.Status, response.Method, response.URL)
		}
	}
}

// HintFor returns what to do next, "" if nothing is known.
func HintFor(err error) string {
	if response, ok := errors.AsType[*client.APIError](err); ok {
		if hint := misdirectedHint(response); hint != "" {
			return hint
		}
	}
	if hinted, ok := errors.AsType[*hintedError](err); ok {
		return hinted.hint
	}
	if silent, ok := errors.AsType[*client.UnreachableError](err); ok {
		return unreachableHint(silent)
	}
	response, ok := errors.AsType[*client.APIError](err)
	if !ok {
		return ""
	}
	if entry, known := errcode.Lookup(errcode.Code(response.Code)); known {
		return entry.Remedy
	}
	switch {
	case response.Source == "invocation" && response.Status == http.StatusConflict && response.InvocationID != "":
		if hint, known := conflictHints[response.Message]; known {
			return hint + " See `platform invocations describe " + response.InvocationID + "`."
		}
		fallthrough
	case response.Source == "invocation" && response.InvocationID != "":
		return "The handler ended with this error. See `platform invocations describe " + response.InvocationID + "`."
	case response.Status == http.StatusUnauthorized:
		return "`platform login` logs in; the variable PLATFORM_TOKEN has precedence."
	case response.Status == http.StatusForbidden:
		return "`platform whoami` shows what your token permits."
	}
	return ""
}

// mentionOtherLogin explains why a login that exists was not used for a rejected request.
func (a *App) mentionOtherLogin(err error) {
	response, ok := errors.AsType[*client.APIError](err)
	if other := a.Profile.OtherLogin; ok && other != nil && response.Status == http.StatusUnauthorized && response.Source != "invocation" {
		fmt.Fprintf(a.Err, "The stored login was not sent: it is for the admin API at %s and the ingress at %s, and these addresses are in use: %s and %s.\n",
			other.AdminURL, other.IngressURL, a.Profile.AdminURL, a.Profile.IngressURL)
	}
}

// conflictHints are hints for failures with status 409 with which the server ends invocations.
var conflictHints = map[string]string{
	"killed":   "The invocation was killed; its handler did not end.",
	"canceled": "The invocation was cancelled before it started.",
	"the workflow was already invoked with this key": workflowRunsOnce,
	"the workflow method was already invoked":        workflowRunsOnce, // below feature level 4
}

const workflowRunsOnce = "A workflow runs once for each key. `platform workflows attach <Workflow/key>` waits for its result."

// misdirectedHint recognizes an admin request that was sent to an ingress, and the reverse.
func misdirectedHint(response *client.APIError) string {
	toIngress := strings.Contains(response.URL, "/platform/")
	switch {
	case response.Source == "ingress" && !toIngress:
		return "This is the address of an ingress. Set that of the admin API (by default port 9070) with --admin-url or PLATFORM_ADMIN_URL."
	case toIngress && strings.HasPrefix(response.Message, "there is no route "):
		return "This is the address of an admin API. Set that of the ingress (by default port 8080) with --ingress-url or PLATFORM_INGRESS_URL."
	case response.Status == http.StatusNotFound && response.Message == notRouted:
		return "This is the address of another server, or of the port for other nodes (by default 5122). The admin API has port 9070 by default, the ingress 8080."
	case response.Status == http.StatusBadRequest && (response.Message == requiresTLS || response.Message == plainToTLS):
		return "The server requires TLS: use an address that begins with https://, and --ca-file if its certificate is of your own authority."
	}
	return ""
}

// notRouted is the response of net/http to a path without a handler, which neither the admin API nor
// the ingress sends.
const notRouted = "404 page not found"

// Responses to a request without TLS at a listener with TLS: of a server, and of net/http, which earlier releases sent.
const (
	requiresTLS = "this port requires TLS: the address of the request must begin with https://"
	plainToTLS  = "Client sent an HTTP request to an HTTPS server."
)

func unreachableHint(e *client.UnreachableError) string {
	where := "--admin-url or PLATFORM_ADMIN_URL"
	if e.Interface == "ingress" {
		where = "--ingress-url or PLATFORM_INGRESS_URL"
	}
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](e.Err); unknown {
		return "No known authority has issued the server's certificate: name the file with the one that has with --ca-file or PLATFORM_CA_FILE."
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](e.Err); ok && invalid.Reason == x509.Expired {
		return "Replace the certificate of the server, or correct the clock of this machine."
	}
	switch {
	case e.Refused():
		hint := "Is the server running? Start one with `platform dev`, or set its address with " + where + "."
		if address, err := url.Parse(e.Address); err == nil && address.Host != "" && address.Port() == "" {
			hint = "The address has no port: the admin API is on 9070 and the ingress on 8080 by default. " + hint
		}
		return hint
	case strings.Contains(e.Err.Error(), "server gave HTTP response to HTTPS client"):
		return "The server does not use TLS: use an address that begins with http://."
	case !e.Sent:
		return "Check the address; set it with " + where + "."
	case !e.Writes:
		return "Nothing was changed. Run the command again."
	case e.Interface != "ingress":
		return "The outcome is unknown: the server may have made the change. Check before you run the command again."
	}
	return "The outcome is unknown: the server may have accepted the request."
}

// hintedError is an error with what to do next.
type hintedError struct {
	err  error
	hint string
}

func (h *hintedError) Error() string { return h.err.Error() }
func (h *hintedError) Unwrap() error { return h.err }

// WithHint adds what to do next to an error.
func WithHint(err error, hint string) error { return &hintedError{err, hint} }

// HintNotFound adds a hint to a 404 of the server itself, not to one returned by a handler.
func HintNotFound(err error, hint string) error {
	response, ok := errors.AsType[*client.APIError](err)
	if ok && response.Status == http.StatusNotFound && response.Code == "" && response.Source != "invocation" {
		return WithHint(err, hint)
	}
	return err
}
