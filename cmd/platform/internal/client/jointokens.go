package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// JoinTokenRequest is a request to create a join token.
type JoinTokenRequest struct {
	Node      string `json:"node,omitempty"`
	ExpiresIn string `json:"expires_in,omitempty"`
}

// JoinToken is a join token without its text.
type JoinToken struct {
	ID        string    `json:"id"`
	Node      string    `json:"node,omitempty"`
	CreatedBy string    `json:"created_by,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Expired   bool      `json:"expired,omitempty"`
	UsedAt    time.Time `json:"used_at,omitzero"`
	UsedBy    string    `json:"used_by,omitempty"`
}

// CreatedJoinToken is a new join token.
type CreatedJoinToken struct {
	Text string `json:"token"`
	JoinToken
}

// Authority is the authority that issues the certificates of nodes.
type Authority struct {
	SHA256    string    `json:"sha256"`
	ExpiresAt time.Time `json:"expires_at"`
}

// CreateJoinToken creates a join token.
func (c *Client) CreateJoinToken(ctx context.Context, r JoinTokenRequest) (t CreatedJoinToken, err error) {
	_, err = c.adminJSON(ctx, http.MethodPost, "/cluster/join-tokens", r, &t)
	return t, err
}

// JoinTokens lists the join tokens.
func (c *Client) JoinTokens(ctx context.Context) ([]JoinToken, *Response, error) {
	var list struct {
		JoinTokens []JoinToken `json:"join_tokens"`
	}
	response, err := c.adminJSON(ctx, http.MethodGet, "/cluster/join-tokens", nil, &list)
	return list.JoinTokens, response, err
}

// RevokeJoinToken revokes a join token by ID.
func (c *Client) RevokeJoinToken(ctx context.Context, id string) (t JoinToken, err error) {
	_, err = c.adminJSON(ctx, http.MethodDelete, "/cluster/join-tokens/"+url.PathEscape(id), nil, &t)
	return t, err
}

// PutAuthority stores an authority, whose certificate and key are in PEM format. Without TLS, it is
// sent to this machine only.
func (c *Client) PutAuthority(ctx context.Context, certificate, key []byte) (a Authority, err error) {
	if u, err := url.Parse(c.admin.base); err != nil || u.Scheme != "https" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback() {
		return a, fmt.Errorf("the key of an authority is sent only with TLS or to this machine, not to %s; run the command on the node, or set admin.tls", c.admin.at)
	}
	_, err = c.adminJSON(ctx, http.MethodPut, "/cluster/authority", map[string]string{"certificate": string(certificate), "key": string(key)}, &a)
	return a, err
}
