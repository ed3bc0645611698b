package openapi

import (
	"fmt"
	"maps"
)

// Part describes some routes of an API, with what the schemas of their bodies need.
type Part struct {
	// Operations are by method and path, such as "GET /services/:service".
	Operations map[string]Operation
	Schemas    Schemas
}

// Join returns the description of the routes of all parts. It panics if two parts describe the same.
func Join(parts ...Part) Part {
	var all Part
	for _, p := range parts {
		add(&all.Operations, p.Operations)
		add(&all.Schemas.Names, p.Schemas.Names)
		add(&all.Schemas.Types, p.Schemas.Types)
		add(&all.Schemas.Fields, p.Schemas.Fields)
		add(&all.Schemas.FieldMeanings, p.Schemas.FieldMeanings)
	}
	return all
}

func add[K comparable, V any](to *map[K]V, from map[K]V) {
	if *to == nil {
		*to = map[K]V{}
	}
	for key := range from {
		if _, twice := (*to)[key]; twice {
			panic(fmt.Sprintf("openapi: two descriptions of %v", key))
		}
	}
	maps.Copy(*to, from)
}
