package admin

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/target"
	"platform/metadata"
)

// serviceOpenAPI responds with the OpenAPI document of a service's ingress requests.
func (s *Server) serviceOpenAPI(c echo.Context) error {
	service, err := findService(s.registry.Schemas(), c)
	if err != nil {
		return err
	}
	ingress := strings.TrimSuffix(s.ingressEndpoint(c.Request()), "/")
	return rest.Respond(c, http.StatusOK, describeService(service, s.cfg.Defaults(), ingress))
}

// describeService generates the OpenAPI document of the requests that the ingress at an address
// accepts for a service. Private handlers, which the ingress rejects, are omitted.
func describeService(service *metadata.Service, defaults *metadata.Defaults, ingress string) object {
	d := serviceDocument{service: service, paths: object{}, schemas: object{"PlatformError": ingressError}}
	for _, h := range service.Handlers {
		if metadata.Effective(h, service, defaults).Public {
			d.add(h)
		}
	}
	return object{
		"openapi": openAPIVersion,
		"info":    object{"title": service.Name, "version": fmt.Sprint(service.Revision), "description": service.Documentation},
		"servers": []object{{"url": ingress, "description": "ingress"}},
		"tags": []object{
			{"name": tagCall, "description": "Call a handler and wait for its result"},
			{"name": tagSend, "description": "Start an invocation without waiting for its result"},
			{"name": tagAttach, "description": "Wait for the result of an invocation"},
			{"name": tagOutput, "description": "Get the result of an invocation without waiting"},
		},
		"paths":      d.paths,
		"components": object{"schemas": d.schemas, "parameters": ingressParameters, "responses": ingressResponses},
	}
}

// Groups of requests.
const (
	tagCall   = "Call"
	tagSend   = "Send"
	tagAttach = "Attach"
	tagOutput = "Get Output"
)

// serviceDocument collects the paths of a service.
type serviceDocument struct {
	service *metadata.Service
	paths   object
	schemas object
}

// add describes all forms of requests to a handler.
func (d *serviceDocument) add(h *metadata.Handler) {
	at, parameters := "/"+d.service.Name, []object{}
	if h.Type.Keyed() {
		at, parameters = at+"/{key}", append(parameters, refer("parameters", "key"))
	}
	request, result := d.request(h), d.response(h)
	if h.Type != target.WorkflowRun {
		parameters = append(parameters, refer("parameters", "idempotencyKeyHeader"))
	}
	call := d.operation(h, tagCall, h.Documentation, parameters, result)
	send := d.operation(h, tagSend, h.Documentation, append(parameters[:len(parameters):len(parameters)], refer("parameters", "delay")), nil)
	if request != nil {
		call["requestBody"], send["requestBody"] = request, request
	}
	d.paths["/platform/call"+at+"/"+h.Name] = object{"post": call}
	d.paths["/platform/send"+at+"/"+h.Name] = object{"post": send}

	var known string // path that identifies an invocation
	known, parameters = "/platform/workflow"+at, []object{refer("parameters", "key")}
	if h.Type != target.WorkflowRun {
		known = "/platform/invocation" + at + "/" + h.Name + "/{idempotencyKey}"
		parameters = []object{refer("parameters", "idempotencyKeyPath")}
		if h.Type.Keyed() {
			parameters = append(parameters, refer("parameters", "key"))
		}
	}
	d.paths[known+"/attach"] = object{"get": d.operation(h, tagAttach, "", parameters, result)}
	d.paths[known+"/output"] = object{"get": d.operation(h, tagOutput, "", parameters, result)}
}

// operation describes one form of requests to a handler. A one-way request has no result.
func (d *serviceDocument) operation(h *metadata.Handler, tag, documentation string, parameters []object, result object) object {
	answers := object{"default": refer("responses", "GenericError")}
	answers["200"] = result
	switch tag {
	case tagSend:
		answers["200"], answers["202"] = refer("responses", "Send"), refer("responses", "Send")
	case tagOutput:
		answers["470"] = refer("responses", "InvocationNotReadyError")
		fallthrough
	case tagAttach:
		answers["404"] = refer("responses", "InvocationNotFoundError")
	}
	described := object{
		"tags": []string{tag}, "operationId": strings.ToLower(strings.ReplaceAll(tag, " ", "-")) + "-" + h.Name, "parameters": parameters,
		"summary": tag + " " + d.service.Name + "/" + h.Name, "responses": answers,
	}
	if documentation != "" {
		described["description"] = documentation
	}
	return described
}

// request describes the body that a handler accepts, nil if it has none.
func (d *serviceDocument) request(h *metadata.Handler) object {
	in := &h.Input
	contentType := in.ContentType
	if in.Any || contentType == "" && in.Required {
		contentType = "*/*"
	}
	if contentType == "" {
		return nil
	}
	return object{
		"required": in.Required && !in.Any,
		"content":  object{contentType: d.media(h.Name+"Input", in.JSONSchema)},
	}
}

// response describes the result of a handler.
func (d *serviceDocument) response(h *metadata.Handler) object {
	described := object{"description": "The result", "headers": resultHeaders}
	if h.Output.ContentType != "" {
		described["content"] = object{h.Output.ContentType: d.media(h.Name+"Output", h.Output.JSONSchema)}
	}
	return described
}

func refer(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }
