package tokens

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/flowcontrol"
	"platform/internal/access"
	"platform/internal/units"
	"platform/invoker/discovery"
	"platform/metadata"
)

// tokenRequest is the body of POST /tokens.
type tokenRequest struct {
	Name      string          `json:"name"`
	Roles     []string        `json:"roles"`
	Services  []string        `json:"services"`
	Scopes    []string        `json:"scopes"`
	ExpiresIn *units.Duration `json:"expires_in"`
}

// tokenView is a token as shown to users.
type tokenView struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Roles     []string       `json:"roles"`
	Services  []string       `json:"services,omitempty"`
	Scopes    []string       `json:"scopes,omitempty"`
	CreatedBy string         `json:"created_by,omitempty"`
	CreatedAt rest.Timestamp `json:"created_at"`
	ExpiresAt rest.Timestamp `json:"expires_at,omitzero"`
	Expired   bool           `json:"expired,omitempty"`
	LastUsed  rest.Timestamp `json:"last_used,omitzero"`
	// Session reports that it is the login of a user.
	Session bool `json:"session,omitempty"`
}

// createdToken is a new token with its secret, which is shown only once.
type createdToken struct {
	Token string `json:"token"`
	tokenView
}

func (s *Server) createToken(c echo.Context) error {
	var r tokenRequest
	if err := s.cfg.Bodies.ReadJSON(c, &r); err != nil {
		return err
	}
	if r.Name = strings.TrimSpace(r.Name); r.Name == "" {
		return rest.Unprocessable("the field 'name' is empty: it names the user of the token, such as ci")
	}
	if !access.Visible(r.Name) {
		return rest.Unprocessable("the field 'name' must be one line without control characters and invisible ones")
	}
	if access.Reserved(r.Name) {
		return rest.Unprocessable("the field 'name' must not begin with jwt:, cert: or oidc:, which is how the names of other clients begin")
	}
	if r.Name == access.Administrator {
		return rest.Unprocessable("the field 'name' must not be %s, which names the administrator with the token of a node in the audit log", access.Administrator)
	}
	roles, err := access.ParseRoles(r.Roles)
	if err != nil {
		return rest.Unprocessable("the field 'roles' is invalid: %v", err)
	}
	// Listings take a name with a comma as several names.
	for i, name := range r.Services {
		if !discovery.IsServiceName(name) {
			return rest.Unprocessable("the field 'services[%d]' is invalid: no service can have the name %s", i, rest.Shorten(name))
		}
	}
	for i, scope := range r.Scopes {
		if err := flowcontrol.CheckScope(scope); err != nil {
			return rest.Unprocessable("the field 'scopes[%d]' is invalid: %v", i, err)
		}
	}
	p := access.From(c.Request().Context())
	for _, role := range roles {
		if !p.Grants(role) {
			return &rest.Error{Status: http.StatusForbidden, Message: fmt.Sprintf("only a token with the permissions of the role %s can grant it; %q has the roles %s", role, p.Name, access.JoinRoles(p.Roles))}
		}
	}
	secret := access.NewSecret()
	token := metadata.Token{
		ID: secret.ID, Name: r.Name, Hash: secret.Hash[:], Services: r.Services, Scopes: r.Scopes, CreatedBy: rest.Requester(c),
	}
	for _, role := range roles {
		token.Roles = append(token.Roles, string(role))
	}
	if r.ExpiresIn != nil {
		if r.ExpiresIn.Std() <= 0 {
			return rest.Unprocessable("the field 'expires_in' must be above 0")
		}
		token.ExpiresAt = s.cfg.Now().Add(r.ExpiresIn.Std()).Truncate(time.Millisecond).UTC()
	}
	rest.Concerns(c, token.ID+" "+token.Name)
	token, err = s.registry.CreateToken(c.Request().Context(), token)
	if err != nil {
		return tokenError(err)
	}
	return rest.Respond(c, http.StatusCreated, createdToken{secret.Text, s.viewToken(&token)})
}

func tokenError(err error) error {
	switch {
	case errors.Is(err, metadata.ErrTokenExists):
		return &rest.Error{Status: http.StatusConflict, Message: err.Error()}
	case errors.Is(err, metadata.ErrTooManyTokens):
		return rest.Unprocessable("%v", err)
	case errors.Is(err, metadata.ErrTokenNotFound):
		return &rest.Error{Status: http.StatusNotFound, Message: err.Error()}
	}
	return err
}

func (s *Server) listTokens(c echo.Context) error {
	views := []tokenView{}
	for _, t := range s.registry.Tokens() {
		views = append(views, s.viewToken(&t))
	}
	slices.SortFunc(views, func(a, b tokenView) int { return strings.Compare(a.Name, b.Name) })
	return rest.Respond(c, http.StatusOK, map[string]any{"tokens": views})
}

// revokeToken revokes a token by ID or name, or a leaked one by its text; by the name of a user, all
// sessions of the user. This node may not know the token yet, or what it permits.
func (s *Server) revokeToken(c echo.Context) error {
	confirmed, err := s.registry.ConfirmedTokens(c.Request().Context())
	if err != nil {
		return tokenError(err)
	}
	tokens := tokensNamed(confirmed, c.Param("token"))
	p := access.From(c.Request().Context())
	if slices.ContainsFunc(tokens, func(t metadata.Token) bool { return slices.Contains(t.Roles, string(access.Admin)) }) && !p.Allows(access.Administer) {
		return &rest.Error{Status: http.StatusForbidden, Message: "only the role admin can revoke a token with the role admin"}
	}
	var revoked metadata.Token
	for _, t := range tokens {
		last, err := s.registry.RevokeToken(c.Request().Context(), t.ID)
		switch {
		case errors.Is(err, metadata.ErrTokenNotFound) && len(tokens) > 1: // the session has just ended
		case err != nil:
			return tokenError(err)
		default:
			revoked = last
		}
	}
	if revoked.ID == "" {
		return tokenError(metadata.ErrTokenNotFound)
	}
	return rest.Respond(c, http.StatusOK, s.viewToken(&revoked))
}

// tokensNamed returns the token with an ID, or those with a name. If there is none, the
// registry rejects the ID.
func tokensNamed(tokens []metadata.Token, text string) (named []metadata.Token) {
	if id, ok := access.SecretID(text); ok {
		text = id
	}
	for _, t := range tokens {
		switch text {
		case t.ID: // a name may have the form of an ID
			return []metadata.Token{t}
		case t.Name:
			named = append(named, t)
		}
	}
	if len(named) == 0 {
		named = []metadata.Token{{ID: text}}
	}
	return named
}

func (s *Server) viewToken(t *metadata.Token) tokenView {
	view := tokenView{
		ID: t.ID, Name: t.Name, Roles: t.Roles, Services: t.Services, Scopes: t.Scopes, CreatedBy: t.CreatedBy, CreatedAt: rest.TimestampOf(t.CreatedAt),
		Session: t.Session,
		Expired: !t.ExpiresAt.IsZero() && !s.cfg.Now().Before(t.ExpiresAt),
	}
	if !t.ExpiresAt.IsZero() {
		view.ExpiresAt = rest.TimestampOf(t.ExpiresAt)
	}
	if !t.LastUsed.IsZero() {
		view.LastUsed = rest.TimestampOf(t.LastUsed)
	}
	return view
}

// GrantOf returns the grant of a token.
func GrantOf(t *metadata.Token) access.Grant {
	g := access.Grant{Hash: t.Hash, Expires: t.ExpiresAt, Session: t.Session}
	g.Principal = access.Principal{Name: t.Name, Token: t.ID, Services: t.Services, Scopes: t.Scopes}
	for _, role := range t.Roles {
		g.Roles = append(g.Roles, access.Role(role)) // an unknown role of a newer server has no permissions
	}
	return g
}
