package discovery

import (
	"platform/internal/target"
	"platform/metadata"
)

func convertHandler(s *metadata.Service, m *handlerManifest) (*metadata.Handler, error) {
	of := "handler " + s.Name + "/" + m.Name
	if !handlerName.MatchString(m.Name) {
		return nil, invalid("service %s: handler name %q is malformed", s.Name, m.Name)
	}
	h := &metadata.Handler{Name: m.Name, Documentation: m.Documentation, Metadata: m.Metadata}
	kind, ok := handlerType(s.Type, m.Type)
	if !ok {
		return nil, invalid("%s: type %q is invalid in a service of type %s", of, m.Type, s.Type)
	}
	h.Type = kind
	var err error
	if h.Options, err = convertOptions(&m.optionsManifest, of); err != nil {
		return nil, err
	}
	h.Options.WorkflowRetention = m.WorkflowRetention.duration()
	switch {
	case m.WorkflowRetention != nil && kind != target.WorkflowRun:
		return nil, invalid("%s: workflowCompletionRetention is only supported for the run handler of a workflow", of)
	case m.IdempotencyRetention != nil && kind == target.WorkflowRun:
		return nil, invalid("%s: idempotencyRetention is not supported for the run handler of a workflow", of)
	case isFalse(s.Options.Public) && isTrue(h.Options.Public):
		return nil, invalid("%s: a private service cannot have a public handler", of)
	}
	if err := convertInput(h, m.Input, of); err != nil {
		return nil, err
	}
	return h, convertOutput(h, m.Output, of)
}

func isTrue(b *bool) bool  { return b != nil && *b }
func isFalse(b *bool) bool { return b != nil && !*b }

// handlerType combines the types of service and handler. A workflow handler without a type
// is shared.
func handlerType(service metadata.ServiceType, announced string) (target.Type, bool) {
	switch service {
	case metadata.PlainService:
		return target.Service, announced == "" || announced == "SHARED"
	case metadata.VirtualObject:
		if announced == "SHARED" {
			return target.ObjectShared, true
		}
		return target.ObjectExclusive, announced == "" || announced == "EXCLUSIVE"
	default:
		if announced == "WORKFLOW" {
			return target.WorkflowRun, true
		}
		return target.WorkflowShared, announced == "" || announced == "SHARED"
	}
}

func convertInput(h *metadata.Handler, m *inputManifest, of string) error {
	if m == nil {
		h.Input.Any = true
		return nil
	}
	h.Input = metadata.InputRules{Required: m.Required, JSONSchema: nonNull(m.JSONSchema)}
	if m.ContentType != nil {
		if h.Input.ContentType = *m.ContentType; !metadata.ValidContentType(*m.ContentType) {
			return invalid("%s: input content type %q is malformed", of, *m.ContentType)
		}
	}
	return checkSchema(h.Input.JSONSchema, of+": input schema")
}

func convertOutput(h *metadata.Handler, m *outputManifest, of string) error {
	if m == nil {
		h.Output.ContentType = "application/json"
		return nil
	}
	h.Output = metadata.OutputRules{SetContentTypeIfEmpty: m.SetContentTypeIfEmpty, JSONSchema: nonNull(m.JSONSchema)}
	if m.ContentType != nil {
		if h.Output.ContentType = *m.ContentType; !metadata.ValidContentType(*m.ContentType) {
			return invalid("%s: output content type %q is malformed", of, *m.ContentType)
		}
	}
	return checkSchema(h.Output.JSONSchema, of+": output schema")
}
