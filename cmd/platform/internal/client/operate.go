package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// MaxBatch is how many invocations one batch may name.
const MaxBatch = 1000

// Batch is the outcome of an operation on several invocations.
type Batch struct {
	Succeeded []BatchSuccess
	Failed    []BatchFailure
}

// BatchSuccess is an invocation that the operation was carried out on.
type BatchSuccess struct {
	ID        string `json:"invocation_id"`
	New       string `json:"new_invocation_id,omitempty"` // of a restart
	Requested bool   `json:"requested,omitempty"`         // of a cancel: it has not ended, its handler decides how
}

// BatchFailure is an invocation that refused the operation.
type BatchFailure struct {
	ID    string `json:"invocation_id"`
	Error string `json:"error"`
}

// OperateOptions are options of some operations. Empty fields select the server's defaults.
type OperateOptions struct {
	Deployment string // to run on, of resume and restart-as-new
	Reason     string // of pause
}

// Operate carries out an operation on up to MaxBatch invocations: cancel, kill,
// pause, resume, purge, purge-journal or restart-as-new.
func (c *Client) Operate(ctx context.Context, operation string, invocations []string, o OperateOptions) (Batch, error) {
	body := struct {
		IDs        []string `json:"invocation_ids"`
		Deployment string   `json:"deployment,omitempty"`
		Reason     string   `json:"reason,omitempty"`
	}{invocations, o.Deployment, o.Reason}
	var response struct {
		Succeeded []json.RawMessage `json:"succeeded"`
		Requested []string          `json:"requested"`
		Failed    []BatchFailure    `json:"failed"`
	}
	if _, err := c.adminJSON(ctx, http.MethodPost, "/internal/invocations_batch_operations/"+operation, body, &response); err != nil {
		return Batch{}, err
	}
	batch := Batch{Failed: response.Failed}
	for _, raw := range response.Succeeded {
		success, err := decodeSuccess(raw)
		if err != nil {
			return Batch{}, fmt.Errorf("decode the response of %s: %w", operation, err)
		}
		success.Requested = slices.Contains(response.Requested, success.ID)
		batch.Succeeded = append(batch.Succeeded, success)
	}
	return batch, nil
}

// decodeSuccess decodes an id or, for restarts, the old and the new one.
func decodeSuccess(raw json.RawMessage) (BatchSuccess, error) {
	var s BatchSuccess
	if len(raw) > 0 && raw[0] == '"' {
		return s, json.Unmarshal(raw, &s.ID)
	}
	var restarted struct {
		Old string `json:"old_invocation_id"`
		New string `json:"new_invocation_id"`
	}
	err := json.Unmarshal(raw, &restarted)
	return BatchSuccess{ID: restarted.Old, New: restarted.New}, err
}

// Copy starts a new invocation with the target of another one, and with its input unless another
// one is given, and returns its id.
func (c *Client) Copy(ctx context.Context, id string, input *[]byte) (made BatchSuccess, response *Response, err error) {
	body := map[string]any{}
	if input != nil {
		body["input_base64"] = *input
	}
	made.ID = id
	response, err = c.adminJSON(ctx, http.MethodPost, "/invocations/"+url.PathEscape(id)+"/copy", body, &made)
	return made, response, err
}

// Restart restarts a completed invocation as a new one and returns its id. from is the last
// journal entry to keep, 0 for the input alone.
func (c *Client) Restart(ctx context.Context, id string, from int, deployment string) (string, error) {
	query := url.Values{"from": {strconv.Itoa(from)}}
	if deployment != "" {
		query.Set("deployment", deployment)
	}
	var response struct {
		New string `json:"new_invocation_id"`
	}
	_, err := c.adminJSON(ctx, http.MethodPatch, "/invocations/"+url.PathEscape(id)+"/restart-as-new?"+query.Encode(), nil, &response)
	return response.New, err
}
