package openapi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPartsDescribeDifferentRoutes(t *testing.T) {
	boxes := Part{Operations: map[string]Operation{"GET /boxes": {ID: "list_boxes"}}, Schemas: Schemas{FieldMeanings: map[string]string{"Box.id": "Its id."}}}
	crates := Part{Operations: map[string]Operation{"GET /crates": {ID: "list_crates"}}}
	all := Join(boxes, crates)
	require.Len(t, all.Operations, 2)
	require.Equal(t, boxes.Schemas.FieldMeanings, all.Schemas.FieldMeanings)
	require.PanicsWithValue(t, "openapi: two descriptions of GET /boxes", func() { Join(all, boxes) })
}
