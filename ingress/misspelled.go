package ingress

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"platform/internal/suggest"
	"platform/metadata"
)

// maxSuggestions bounds the names that a misspelled one is compared with.
const maxSuggestions = 200

// nearService suggests a public service with a similar name; "" if there is none.
func nearService(schemas *metadata.Schemas, name string) string {
	if len(schemas.Services) > maxSuggestions {
		return ""
	}
	var names []string
	for _, svc := range schemas.Services {
		if isPublic(svc.Options) {
			names = append(names, svc.Name)
		}
	}
	names = append(names, strings.TrimPrefix(reserved[0], "/"))
	slices.Sort(names)
	return didYouMean(name, names)
}

// nearHandler suggests a public handler with a similar name; "" if there is none.
func nearHandler(svc *metadata.Service, name string) string {
	if !isPublic(svc.Options) || len(svc.Handlers) > maxSuggestions {
		return ""
	}
	var names []string
	for _, h := range svc.Handlers {
		if isPublic(h.Options) {
			names = append(names, h.Name)
		}
	}
	return didYouMean(name, names)
}

func isPublic(o metadata.Options) bool { return o.Public == nil || *o.Public }

func didYouMean(name string, names []string) string {
	if near := suggest.Nearest(name, names); near != "" {
		return "; did you mean '" + near + "'?"
	}
	return ""
}

// badEnding is the problem of a segment after the handler.
func badEnding(s *metadata.Service, ending string, sendSuffix bool) error {
	hint := ""
	switch {
	case sendSuffix:
		hint = didYouMean(ending, []string{"send"})
	case ending == "send":
		hint = "; only paths without a prefix end in /send, others contain it before the service, as /platform/send/" + pathOf(s)
	}
	return badRequest("bad path: %s%s", shapeOf(s), hint)
}

// shapes are the forms of the routes below the reserved prefix, by their first segment.
var shapes = map[string]string{
	"call":       "call/{service}/{handler} or call/{service}/{key}/{handler}",
	"send":       "send/{service}/{handler} or send/{service}/{key}/{handler}",
	"scope":      "scope/{scope}/call/{service}/{handler} or scope/{scope}/send/{service}/{handler}, with {key}/ before the handler of an object or workflow",
	"attach":     "attach/{invocation id}",
	"output":     "output/{invocation id}",
	"lookup":     "lookup",
	"workflow":   "workflow/{workflow}/{key}/attach or workflow/{workflow}/{key}/output",
	"invocation": "invocation/{id}/attach, invocation/{id}/output or invocation/{id}/signal/{name}/resolve",
	"awakeables": "awakeables/{id}/resolve or awakeables/{id}/reject",
	"health":     "health",
}

// otherPort is the hint for a path of the admin API that is not one of the ingress.
func otherPort(r *http.Request) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch first {
	case "health":
		return "; the health of the ingress is GET /platform/health"
	case "deployments", "services", "invocations", "query", "metrics", "openapi", "version", "ui", "subscriptions", "tokens", "cluster-health":
		return "; /" + first + " is a path of the admin API, which has another port (9070 by default)"
	}
	return ""
}

// noRoute is the problem of a path below the reserved prefix that does not exist.
func noRoute(r *http.Request) *problem {
	message := fmt.Sprintf("not found: there is no route %s %s; ", r.Method, r.URL.Path)
	_, below, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	first, _, _ := strings.Cut(below, "/")
	names := []string{"call", "send", "scope", "attach", "output", "lookup", "workflow", "invocation", "awakeables", "health"}
	near := suggest.Nearest(first, names)
	switch {
	case strings.HasPrefix(r.URL.Path, "/openapi/"):
		message += "GET /services/{service}/openapi of the admin API describes a service"
	case shapes[first] != "":
		message += "expected " + shapes[first]
	case near != "":
		message += "did you mean " + shapes[near] + "?"
	default:
		message += "below /platform/ there are call, send, scope, attach, output, workflow, invocation, awakeables and health"
	}
	return &problem{status: http.StatusNotFound, message: message}
}
