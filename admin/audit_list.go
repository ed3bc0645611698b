package admin

import (
	"context"
	"encoding/hex"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/metadata"
)

// auditLog is the audit log of the cluster.
type auditLog interface {
	RecordAction(context.Context, metadata.Action) error
	// Audit returns the records before a number.
	Audit(before uint64, limit int) ([]metadata.AuditRecord, error)
	VerifyAudit() (metadata.AuditState, error)
}

// auditView is a record of the audit log as shown to users.
type auditView struct {
	Sequence  uint64         `json:"sequence"`
	At        rest.Timestamp `json:"at"`
	Principal string         `json:"principal,omitempty"`
	TokenID   string         `json:"token_id,omitempty"`
	Address   string         `json:"address,omitempty"`
	Node      string         `json:"node,omitempty"`
	Action    string         `json:"action"`
	Object    string         `json:"object"`
	Status    uint32         `json:"status,omitempty"`
	Outcome   string         `json:"outcome,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	// Invocations lists the invocations of a batch.
	Invocations []string `json:"invocations,omitempty"`
	Omitted     uint32   `json:"omitted,omitempty"`
	Before      string   `json:"before_sha256,omitempty"`
	After       string   `json:"after_sha256,omitempty"`
	Previous    string   `json:"previous_hash,omitempty"`
	Hash        string   `json:"hash"`
}

const maxAuditPage = 1000

func (s *Server) listAudit(c echo.Context) error {
	limit, before := 100, uint64(0)
	if text := c.QueryParam("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxAuditPage {
			return rest.BadRequest("The query parameter 'limit' is invalid: %q is not a number from 1 to %d", text, maxAuditPage)
		}
		limit = n
	}
	if text := c.QueryParam("before"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n == 0 {
			return rest.BadRequest("The query parameter 'before' is invalid: %q is not the number of a record", text)
		}
		before = n
	}
	records, err := s.registry.Audit(before, limit)
	if err != nil {
		return err
	}
	views := []auditView{}
	for i := range records {
		views = append(views, viewAudit(&records[i]))
	}
	return rest.Respond(c, http.StatusOK, map[string]any{"records": views})
}

func viewAudit(r *metadata.AuditRecord) auditView {
	a := &r.Action
	return auditView{
		Sequence: r.Sequence, At: rest.TimestampOf(r.At), Principal: a.Principal, TokenID: a.Token, Address: a.Address, Node: a.Node, Action: a.Action,
		Object: a.Object, Status: a.Status, Outcome: a.Outcome, Reason: a.Reason, Invocations: a.Objects, Omitted: a.Omitted,
		Before: hex.EncodeToString(r.Before), After: hex.EncodeToString(r.After), Previous: hex.EncodeToString(r.Previous), Hash: hex.EncodeToString(r.Hash),
	}
}

// auditVerification is the result of verifying the audit log.
type auditVerification struct {
	Intact  bool   `json:"intact"`
	Problem string `json:"problem,omitempty"`
	Records int    `json:"records"`
	// Deleted is the number of records that were deleted to make room.
	Deleted int    `json:"deleted"`
	First   uint64 `json:"first_sequence,omitempty"`
	Last    uint64 `json:"last_sequence,omitempty"`
	// Hash is that of the last record. An external copy of it can prove later that the records up
	// to it are unchanged.
	Hash string `json:"hash,omitempty"`
}

func (s *Server) verifyAudit(c echo.Context) error {
	state, err := s.registry.VerifyAudit()
	if err != nil {
		return err
	}
	view := auditVerification{
		Records: state.Kept, Deleted: state.Deleted, First: state.First, Last: state.Last, Hash: hex.EncodeToString(state.Hash), Intact: state.Problem == nil,
	}
	if state.Problem != nil {
		view.Problem = state.Problem.Error()
	}
	return rest.Respond(c, http.StatusOK, view)
}
