package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Identity is the principal of the client and its permissions.
type Identity struct {
	Name          string   `json:"name"`
	TokenID       string   `json:"token_id"`
	Roles         []string `json:"roles"`
	Permissions   []string `json:"permissions"`
	Services      []string `json:"services"`
	Scopes        []string `json:"scopes"`
	TokenRequired bool     `json:"token_required"`
	SecurityMode  string   `json:"security_mode"`
}

// WhoAmI returns the identity of the client.
func (c *Client) WhoAmI(ctx context.Context) (id Identity, err error) {
	_, err = c.adminJSON(ctx, http.MethodGet, "/whoami", nil, &id)
	return id, err
}

// LoginOptions are the ways to log in other than with a token.
type LoginOptions struct {
	OIDC struct {
		Issuer      string   `json:"issuer"`
		CLIClientID string   `json:"cli_client_id"`
		Scopes      []string `json:"scopes"`
	} `json:"oidc"`
}

// LoginOptions returns the identity provider of the server.
func (c *Client) LoginOptions(ctx context.Context) (options LoginOptions, err error) {
	_, err = c.adminJSON(ctx, http.MethodGet, "/login", nil, &options)
	return options, err
}

// Session is a login of a user.
type Session struct {
	Token     string    `json:"token"`
	Name      string    `json:"name"`
	Roles     []string  `json:"roles"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Exchange creates a session with an ID token of the identity provider.
func (c *Client) Exchange(ctx context.Context, idToken string) (session Session, err error) {
	_, err = c.adminJSON(ctx, http.MethodPost, "/login/token", map[string]string{"id_token": idToken}, &session)
	return session, err
}

// Logout revokes the session whose token the client uses. It returns the page at which the user ends
// the session at the identity provider; empty if there is none.
func (c *Client) Logout(ctx context.Context) (page string, err error) {
	var out struct {
		LogoutURL string `json:"logout_url"`
	}
	_, err = c.adminJSON(ctx, http.MethodPost, "/logout", nil, &out)
	return out.LogoutURL, err
}

// TokenRequest is a request to create a token.
type TokenRequest struct {
	Name      string   `json:"name"`
	Roles     []string `json:"roles"`
	Services  []string `json:"services,omitempty"`
	Scopes    []string `json:"scopes,omitempty"`
	ExpiresIn string   `json:"expires_in,omitempty"`
}

// Token is a token without its text.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Roles     []string  `json:"roles"`
	Services  []string  `json:"services,omitempty"`
	Scopes    []string  `json:"scopes,omitempty"`
	CreatedBy string    `json:"created_by,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Expired   bool      `json:"expired,omitempty"`
	LastUsed  time.Time `json:"last_used,omitzero"`
}

// CreatedToken is a new token.
type CreatedToken struct {
	Text string `json:"token"`
	Token
}

// CreateToken creates a token.
func (c *Client) CreateToken(ctx context.Context, r TokenRequest) (t CreatedToken, err error) {
	_, err = c.adminJSON(ctx, http.MethodPost, "/tokens", r, &t)
	return t, err
}

// Tokens lists the tokens.
func (c *Client) Tokens(ctx context.Context) ([]Token, *Response, error) {
	var list struct{ Tokens []Token }
	response, err := c.adminJSON(ctx, http.MethodGet, "/tokens", nil, &list)
	return list.Tokens, response, err
}

// RevokeToken revokes a token by ID or name.
func (c *Client) RevokeToken(ctx context.Context, token string) (t Token, err error) {
	_, err = c.adminJSON(ctx, http.MethodDelete, "/tokens/"+url.PathEscape(token), nil, &t)
	return t, err
}

// AuditRecord is a record of the audit log.
type AuditRecord struct {
	Sequence  uint64    `json:"sequence"`
	At        time.Time `json:"at"`
	Principal string    `json:"principal"`
	Address   string    `json:"address"`
	Action    string    `json:"action"`
	Object    string    `json:"object"`
	Status    int       `json:"status"`
	Outcome   string    `json:"outcome"`
	Omitted   int       `json:"omitted"` // earlier requests of the principal without effect that have no record
}

// Audit returns up to limit records of the audit log before a number, the newest first; 0 for the
// newest of all.
func (c *Client) Audit(ctx context.Context, before uint64, limit int) ([]AuditRecord, *Response, error) {
	values := url.Values{"limit": {strconv.Itoa(limit)}}
	if before > 0 {
		values.Set("before", strconv.FormatUint(before, 10))
	}
	var list struct{ Records []AuditRecord }
	response, err := c.adminJSON(ctx, http.MethodGet, "/audit"+queryOf(values), nil, &list)
	return list.Records, response, err
}

// AuditVerification reports whether the audit log is intact.
type AuditVerification struct {
	Intact  bool   `json:"intact"`
	Problem string `json:"problem"`
	Records int    `json:"records"`
	Deleted int    `json:"deleted"`
	First   uint64 `json:"first_sequence"`
	Last    uint64 `json:"last_sequence"`
	Hash    string `json:"hash"`
}

// VerifyAudit makes the server verify the audit log.
func (c *Client) VerifyAudit(ctx context.Context) (v AuditVerification, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodGet, "/audit/verification", nil, &v)
	return v, response, err
}
