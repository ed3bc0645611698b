package openapi

import (
	"fmt"
	"strings"

	"platform/internal/target"
	"platform/metadata"
)

// Service generates the OpenAPI document of the requests that the ingress at an address accepts for a
// service. Private handlers, which the ingress rejects, are omitted.
func Service(service *metadata.Service, defaults *metadata.Defaults, ingress string) Object {
	d := serviceDocument{service: service, paths: Object{}, schemas: Object{"PlatformError": ingressError}}
	for _, h := range service.Handlers {
		if metadata.Effective(h, service, defaults).Public {
			d.add(h)
		}
	}
	return Object{
		"openapi": version,
		"info":    Object{"title": service.Name, "version": fmt.Sprint(service.Revision), "description": service.Documentation},
		"servers": []Object{{"url": ingress, "description": "ingress"}},
		"tags": []Object{
			{"name": tagCall, "description": "Call a handler and wait for its result"},
			{"name": tagSend, "description": "Start an invocation without waiting for its result"},
			{"name": tagAttach, "description": "Wait for the result of an invocation"},
			{"name": tagOutput, "description": "Get the result of an invocation without waiting"},
		},
		"paths":      d.paths,
		"components": Object{"schemas": d.schemas, "parameters": ingressParameters, "responses": ingressResponses},
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
	paths   Object
	schemas Object
}

// add describes all forms of requests to a handler.
func (d *serviceDocument) add(h *metadata.Handler) {
	at, parameters := "/"+d.service.Name, []Object{}
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
	d.paths["/platform/call"+at+"/"+h.Name] = Object{"post": call}
	d.paths["/platform/send"+at+"/"+h.Name] = Object{"post": send}

	var known string // path that identifies an invocation
	known, parameters = "/platform/workflow"+at, []Object{refer("parameters", "key")}
	if h.Type != target.WorkflowRun {
		known = "/platform/invocation" + at + "/" + h.Name + "/{idempotencyKey}"
		parameters = []Object{refer("parameters", "idempotencyKeyPath")}
		if h.Type.Keyed() {
			parameters = append(parameters, refer("parameters", "key"))
		}
	}
	d.paths[known+"/attach"] = Object{"get": d.operation(h, tagAttach, "", parameters, result)}
	d.paths[known+"/output"] = Object{"get": d.operation(h, tagOutput, "", parameters, result)}
}

// operation describes one form of requests to a handler. A one-way request has no result.
func (d *serviceDocument) operation(h *metadata.Handler, tag, documentation string, parameters []Object, result Object) Object {
	responses := Object{"default": refer("responses", "GenericError")}
	responses["200"] = result
	switch tag {
	case tagSend:
		responses["200"], responses["202"] = refer("responses", "Send"), refer("responses", "Send")
	case tagOutput:
		responses["470"] = refer("responses", "InvocationNotReadyError")
		fallthrough
	case tagAttach:
		responses["404"] = refer("responses", "InvocationNotFoundError")
	}
	described := Object{
		"tags": []string{tag}, "operationId": strings.ToLower(strings.ReplaceAll(tag, " ", "-")) + "-" + h.Name, "parameters": parameters,
		"summary": tag + " " + d.service.Name + "/" + h.Name, "responses": responses,
	}
	if documentation != "" {
		described["description"] = documentation
	}
	return described
}

// request describes the body that a handler accepts, nil if it has none.
func (d *serviceDocument) request(h *metadata.Handler) Object {
	in := &h.Input
	contentType := in.ContentType
	if in.Any || contentType == "" && in.Required {
		contentType = "*/*"
	}
	if contentType == "" {
		return nil
	}
	return Object{
		"required": in.Required && !in.Any,
		"content":  Object{contentType: d.media(h.Name+"Input", in.JSONSchema)},
	}
}

// response describes the result of a handler.
func (d *serviceDocument) response(h *metadata.Handler) Object {
	described := Object{"description": "The result", "headers": resultHeaders}
	if h.Output.ContentType != "" {
		described["content"] = Object{h.Output.ContentType: d.media(h.Name+"Output", h.Output.JSONSchema)}
	}
	return described
}
