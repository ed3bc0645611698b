package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/metadata"
	"platform/partition/listing"
)

// failureMarkRegistry stores the marks of failure groups.
type failureMarkRegistry interface {
	// FailureMarks returns the marks of all failure groups, FailureMark that of one group.
	FailureMarks() []metadata.FailureMark
	FailureMark(group string) (metadata.FailureMark, bool)
	MarkFailure(context.Context, metadata.FailureMarkEdit) (metadata.FailureMark, error)
}

// failureMark contains the mute setting and note of operators for a failure group.
type failureMark struct {
	Muted    bool           `json:"muted,omitempty"`
	Note     string         `json:"note,omitempty"`
	MarkedBy string         `json:"marked_by,omitempty"`
	MarkedAt rest.Timestamp `json:"marked_at,omitzero"`
}

// failureMarkRequest is the body of PATCH /failures/:group. nil fields are not changed.
type failureMarkRequest struct {
	Muted *bool   `json:"muted"`
	Note  *string `json:"note"`
}

// markFailure mutes or unmutes a failure group, or changes its note. A group without invocations
// can be changed as long as it has a mark.
func (s *Server) markFailure(c echo.Context) error {
	id, err := listing.ParseGroup(c.Param("group"))
	if err != nil {
		return rest.InvalidField("group", err)
	}
	var r failureMarkRequest
	if err := s.bodies.ReadJSON(c, &r); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	group, err := s.failureGroup(c, id)
	if err != nil {
		return err
	}
	if _, marked := s.registry.FailureMark(id.String()); group == nil && !marked {
		return noFailure(id.String())
	}
	mark, err := s.registry.MarkFailure(c.Request().Context(), metadata.FailureMarkEdit{Group: id.String(), Muted: r.Muted, Note: r.Note, By: rest.Requester(c)})
	if err != nil {
		return err
	}
	if group == nil {
		group = &FailureGroup{ID: id.String(), ByStatus: map[Status]int{}, Deployments: []ids.Deployment{}}
	}
	group.failureMark = viewFailureMark(&mark)
	return rest.Respond(c, http.StatusOK, group)
}

func (r *failureMarkRequest) check() error {
	switch {
	case r.Muted == nil && r.Note == nil:
		return rest.Unprocessable("the body needs the field 'muted' (true or false) or 'note' (a text, empty to delete it)")
	case r.Note == nil:
		return nil
	case len(*r.Note) > metadata.MaxFailureNote:
		return rest.Unprocessable("the field 'note' has %d bytes; at most %d are allowed", len(*r.Note), metadata.MaxFailureNote)
	case !utf8.ValidString(*r.Note) || strings.ContainsFunc(*r.Note, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return rest.Unprocessable("the field 'note' must be text without control characters")
	}
	return nil
}

func noFailure(id string) error {
	return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("no invocation belongs to the failure group '%s' now", id)}
}

// marked adds the marks to failure groups.
func (s *Server) marked(groups []FailureGroup) {
	for i := range groups {
		if mark, ok := s.registry.FailureMark(groups[i].ID); ok {
			groups[i].failureMark = viewFailureMark(&mark)
		}
	}
}

func viewFailureMark(m *metadata.FailureMark) failureMark {
	if !m.Muted && m.Note == "" {
		return failureMark{}
	}
	return failureMark{Muted: m.Muted, Note: m.Note, MarkedBy: m.By, MarkedAt: rest.TimestampOf(m.At)}
}
