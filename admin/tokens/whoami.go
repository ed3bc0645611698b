package tokens

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/access"
)

// whoAmIView contains the permissions of a request.
type whoAmIView struct {
	Name        string              `json:"name,omitempty"`
	TokenID     string              `json:"token_id,omitempty"`
	Roles       []access.Role       `json:"roles"`
	Permissions []access.Permission `json:"permissions"`
	Services    []string            `json:"services,omitempty"`
	Scopes      []string            `json:"scopes,omitempty"`
	// Session reports that the client has logged in with an identity provider, until ExpiresAt.
	Session   bool           `json:"session,omitempty"`
	ExpiresAt rest.Timestamp `json:"expires_at,omitzero"`
	// TokenRequired reports whether requests without a token are rejected.
	TokenRequired bool `json:"token_required"`
	// Mode is security.mode.
	Mode string `json:"security_mode,omitempty"`
}

func (s *Server) whoAmI(c echo.Context) error {
	p := access.From(c.Request().Context())
	view := whoAmIView{
		Name: p.Name, TokenID: p.Token, Roles: p.Roles, Permissions: []access.Permission{}, Services: p.Services, Scopes: p.Scopes,
		TokenRequired: s.cfg.Authenticator.Required, Mode: s.cfg.SecurityMode,
	}
	if t, known := s.registry.Token(p.Token); known {
		view.Session = t.Session
		if !t.ExpiresAt.IsZero() {
			view.ExpiresAt = rest.TimestampOf(t.ExpiresAt)
		}
	}
	if view.Roles == nil {
		view.Roles = []access.Role{}
	}
	for _, permission := range access.Permissions {
		if p.Allows(permission) {
			view.Permissions = append(view.Permissions, permission)
		}
	}
	return rest.Respond(c, http.StatusOK, view)
}
