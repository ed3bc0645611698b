package admin

import (
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/errcode"
)

// health responds with whether the node should receive requests.
func (s *Server) health(c echo.Context) error {
	if err := s.cfg.Ready(); err != nil {
		return &rest.Error{Status: http.StatusServiceUnavailable, Message: err.Error()}
	}
	if s.cfg.SecurityMode == openMode {
		return rest.Respond(c, http.StatusOK, healthView{SecurityMode: openMode, Message: "every client that can connect may do everything"})
	}
	return c.NoContent(http.StatusOK)
}

const openMode = "open"

// healthView is the body of a healthy response.
type healthView struct {
	SecurityMode string `json:"security_mode"`
	Message      string `json:"message"`
}

func (s *Server) version(c echo.Context) error {
	return rest.Respond(c, http.StatusOK, versionView{
		Version: s.cfg.Build.Version, Commit: s.cfg.Build.Commit, GoVersion: s.cfg.Build.Toolchain, FeatureLevel: uint32(s.cfg.Build.Level),
		MinVersion: minVersion, MaxVersion: maxVersion, IngressEndpoint: s.ingressEndpoint(c.Request()), Features: s.cfg.Features,
	})
}

type versionView struct {
	Version         string          `json:"version"`
	Commit          string          `json:"commit,omitempty"`
	GoVersion       string          `json:"go_version"`
	FeatureLevel    uint32          `json:"supported_feature_level"`
	MinVersion      int             `json:"min_admin_api_version"`
	MaxVersion      int             `json:"max_admin_api_version"`
	IngressEndpoint string          `json:"ingress_endpoint"`
	Features        map[string]bool `json:"features"`
}

// ingressEndpoint returns the configured ingress address. By default it uses the host of the
// request, which is known to be reachable for the client.
func (s *Server) ingressEndpoint(r *http.Request) string {
	if s.cfg.Ingress.Endpoint != "" {
		return s.cfg.Ingress.Endpoint
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host // without port
		if n := len(host); n > 1 && host[0] == '[' && host[n-1] == ']' {
			host = host[1 : n-1]
		}
	}
	scheme := "http"
	if s.cfg.Ingress.TLS {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(s.cfg.Ingress.Port)) + "/"
}

// errorView is an entry of the error catalogue.
type errorView struct {
	Code    errcode.Code `json:"code"`
	Title   string       `json:"title"`
	Meaning string       `json:"meaning"`
	Remedy  string       `json:"remedy"`
}

func (s *Server) listErrors(c echo.Context) error {
	list := []errorView{}
	for _, e := range errcode.All() {
		list = append(list, errorView{e.Code, e.Title, e.Meaning, e.Remedy})
	}
	return rest.Respond(c, http.StatusOK, map[string]any{"errors": list})
}

func (s *Server) getError(c echo.Context) error {
	e, ok := errcode.Lookup(errcode.Code(c.Param("code")))
	if !ok {
		return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("The error code '%s' does not exist", c.Param("code"))}
	}
	return rest.Respond(c, http.StatusOK, errorView{e.Code, e.Title, e.Meaning, e.Remedy})
}
