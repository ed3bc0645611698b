package telemetry

import "log/slog"

// field is an attribute whose key is prefixed with the names of its groups.
type field struct {
	key   string
	value slog.Value
}

// recordFields returns the bound fields and those of the record.
func recordFields(bound []field, group string, record slog.Record) []field {
	fields := bound[:len(bound):len(bound)]
	record.Attrs(func(a slog.Attr) bool {
		fields = appendFields(fields, group, []slog.Attr{a})
		return true
	})
	return fields
}

// appendFields flattens attributes and drops empty ones, as slog.Handler requires.
func appendFields(fields []field, group string, attrs []slog.Attr) []field {
	for _, a := range attrs {
		value := a.Value.Resolve()
		switch {
		case a.Key == "" && value.Kind() != slog.KindGroup:
		case value.Kind() == slog.KindGroup:
			fields = appendFields(fields, joinGroup(group, a.Key), value.Group())
		default:
			fields = append(fields, field{joinGroup(group, a.Key), value})
		}
	}
	return fields
}

func joinGroup(group, name string) string {
	if group == "" || name == "" {
		return group + name
	}
	return group + "." + name
}
