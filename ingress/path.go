package ingress

import (
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"platform/internal/errcode"
	"platform/metadata"
	"platform/partition/machine"
)

// parsedTarget is the meaning of the path of a call.
type parsedTarget struct {
	service *metadata.Service
	handler *metadata.Handler
	scope   string // empty: none
	key     string
	oneWay  bool
}

func (t *parsedTarget) machine() machine.Target {
	return machine.Target{Scope: t.scope, Service: t.service.Name, Key: t.key, Handler: t.handler.Name, Type: t.handler.Type}
}

// parseTarget reads {service}[/{key}]/{handler}[/send] without the leading slash. The type of the
// service decides whether there is a key, so the service comes first. Only paths without a prefix may
// have the ending (sendSuffix).
func parseTarget(schemas *metadata.Schemas, path string, u *url.URL, sendSuffix bool) (parsedTarget, error) {
	var t parsedTarget
	name, rest, _ := strings.Cut(path, "/")
	name, err := unescape(name, u)
	if err != nil {
		return t, err
	}
	if name == "" {
		return t, badRequest("bad path: the name of the service must not be empty")
	}
	if t.service = schemas.Services[name]; t.service == nil {
		return t, &problem{status: http.StatusNotFound, message: "service '" + name + "' not found, make sure to register the service before calling it" + nearService(schemas, name)}
	}
	handler := rest
	if t.service.Type != metadata.PlainService {
		var found bool
		if t.key, handler, found = strings.Cut(rest, "/"); !found {
			return t, badShape(t.service)
		}
		// The key may be empty, as in calls by handlers.
		if t.key, err = unescape(t.key, u); err != nil {
			return t, err
		}
	}
	handler, ending, found := strings.Cut(handler, "/")
	if t.oneWay = sendSuffix && ending == "send"; found && !t.oneWay {
		return t, badEnding(t.service, ending, sendSuffix)
	}
	if handler, err = unescape(handler, u); err != nil {
		return t, err
	}
	if handler == "" {
		return t, badShape(t.service)
	}
	if t.handler = t.service.Handler(handler); t.handler == nil {
		return t, &problem{status: http.StatusNotFound, message: "service '" + name + "' has no handler '" + handler + "'" + nearHandler(t.service, handler)}
	}
	return t, nil
}

// badShape is the problem of a path that a service does not have.
func badShape(s *metadata.Service) error {
	return badRequest("bad path: %s", shapeOf(s))
}

// shapeOf describes the paths of a service.
func shapeOf(s *metadata.Service) string {
	kind := "service without keys, whose handlers are called as "
	switch s.Type {
	case metadata.VirtualObject:
		kind = "virtual object, whose handlers are called with a key: "
	case metadata.Workflow:
		kind = "workflow, whose handlers are called with a key: "
	}
	return "'" + s.Name + "' is a " + kind + pathOf(s)
}

// pathOf is the form of the paths of a service, without a prefix.
func pathOf(s *metadata.Service) string {
	if s.Type == metadata.PlainService {
		return s.Name + "/{handler}"
	}
	return s.Name + "/{key}/{handler}"
}

// checkCallable rejects handlers that requests from outside cannot reach.
func checkCallable(schemas *metadata.Schemas, t *parsedTarget, public bool) error {
	if !public {
		return badRequest("the invoked service is not public: only other services can call '%s/%s'", t.service.Name, t.handler.Name)
	}
	if d := schemas.Deployments[t.service.Deployment]; d != nil && d.Deprecated() {
		return coded(errcode.RT0020, "service '%s' is served by a deployment that speaks a deprecated version of the service protocol: upgrade its SDK and register it again", t.service.Name)
	}
	return nil
}

// checkText rejects text that cannot be a name or a key.
func checkText(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", badRequest("bad path: the segment %q is not valid UTF-8", s)
	}
	// They would end lines of logs and headers, and strings of other programs.
	if strings.ContainsFunc(s, unicode.IsControl) {
		return "", badRequest("bad path: the segment %q has control characters", s)
	}
	return s, nil
}
