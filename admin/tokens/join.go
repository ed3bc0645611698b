package tokens

import (
	"cmp"
	"encoding/hex"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/certs"
	"platform/internal/cluster/enroll"
	"platform/internal/units"
	"platform/metadata"
)

// defaultJoinTokenValidity is the validity of a join token unless the request has another one.
const defaultJoinTokenValidity = time.Hour

// joinTokenRequest is the body of POST /cluster/join-tokens.
type joinTokenRequest struct {
	Node      string          `json:"node"`
	ExpiresIn *units.Duration `json:"expires_in"`
}

// joinTokenView is a join token as shown to users.
type joinTokenView struct {
	ID        string         `json:"id"`
	Node      string         `json:"node,omitempty"`
	CreatedBy string         `json:"created_by,omitempty"`
	CreatedAt rest.Timestamp `json:"created_at"`
	ExpiresAt rest.Timestamp `json:"expires_at"`
	Expired   bool           `json:"expired,omitempty"`
	UsedAt    rest.Timestamp `json:"used_at,omitzero"`
	UsedBy    string         `json:"used_by,omitempty"`
}

// createdJoinToken is a new join token with its secret, which is shown only once.
type createdJoinToken struct {
	Token string `json:"token"`
	joinTokenView
}

// createJoinToken requires the permission to administer: a client with a join token can become a
// node, and nodes are trusted.
func (s *Server) createJoinToken(c echo.Context) error {
	var r joinTokenRequest
	if err := s.cfg.Bodies.ReadJSON(c, &r); err != nil {
		return err
	}
	if r.Node != "" && !certs.ValidName(r.Node) {
		return rest.Unprocessable("the field 'node' is not the name of a node that can be part of a certificate: letters, digits, '.', '_' and '-'")
	}
	validity := defaultJoinTokenValidity
	if r.ExpiresIn != nil {
		validity = r.ExpiresIn.Std()
	}
	if validity < time.Second || validity > metadata.MaxJoinTokenValidity {
		return rest.Unprocessable("the field 'expires_in' must be a duration from 1s to 7d")
	}
	if s.cfg.NodeTLS.Mode == "off" {
		return &rest.Error{Status: http.StatusConflict, Message: "no join token was created: connections between nodes use no TLS, so that nodes need no certificates; set security.node-tls.mode to allow and then require on all nodes (platform docs security)"}
	}
	authority, known := s.registry.Authority()
	if !known {
		return &rest.Error{Status: http.StatusConflict, Message: "no join token was created: the cluster does not have the key of the authority that issues certificates of nodes; store it with platform cluster ca import, or issue certificates with platform cluster ca node"}
	}
	token := enroll.NewToken(authority.Hash())
	hash := token.Hash()
	rest.Concerns(c, token.ID)
	stored, err := s.registry.CreateJoinToken(c.Request().Context(), metadata.JoinToken{
		ID: token.ID, Hash: hash[:], Node: r.Node, CreatedBy: rest.Requester(c),
	}, validity)
	if err != nil {
		return joinTokenError(err)
	}
	return rest.Respond(c, http.StatusCreated, createdJoinToken{token.Text(), s.viewJoinToken(&stored)})
}

func joinTokenError(err error) error {
	switch {
	case errors.Is(err, metadata.ErrTooManyJoinTokens):
		return rest.Unprocessable("%v", err)
	case errors.Is(err, metadata.ErrJoinTokenNotFound):
		return &rest.Error{Status: http.StatusNotFound, Message: err.Error()}
	}
	return err
}

func (s *Server) listJoinTokens(c echo.Context) error {
	views := []joinTokenView{}
	for _, t := range s.registry.JoinTokens() {
		views = append(views, s.viewJoinToken(&t))
	}
	slices.SortFunc(views, func(a, b joinTokenView) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return rest.Respond(c, http.StatusOK, map[string]any{"join_tokens": views})
}

func (s *Server) revokeJoinToken(c echo.Context) error {
	id := c.Param("join_token")
	if token, err := enroll.ParseToken(id); err == nil {
		id = token.ID
	}
	revoked, err := s.registry.RevokeJoinToken(c.Request().Context(), id)
	if err != nil {
		return joinTokenError(err)
	}
	return rest.Respond(c, http.StatusOK, s.viewJoinToken(&revoked))
}

func (s *Server) viewJoinToken(t *metadata.JoinToken) joinTokenView {
	view := joinTokenView{
		ID: t.ID, Node: t.Node, CreatedBy: t.CreatedBy, CreatedAt: rest.TimestampOf(t.CreatedAt), ExpiresAt: rest.TimestampOf(t.ExpiresAt),
		Expired: !s.cfg.Now().Before(t.ExpiresAt), UsedBy: t.UsedBy,
	}
	if !t.UsedAt.IsZero() {
		view.UsedAt = rest.TimestampOf(t.UsedAt)
	}
	return view
}

// authorityRequest is the body of PUT /cluster/authority.
type authorityRequest struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// authorityView is the authority of the cluster.
type authorityView struct {
	SHA256    string         `json:"sha256"`
	ExpiresAt rest.Timestamp `json:"expires_at"`
}

// putAuthority stores the key of the authority of nodes, which is accepted only with TLS or from
// the machine of the node.
func (s *Server) putAuthority(c echo.Context) error {
	address, _ := netip.ParseAddr(rest.RemoteAddress(c.Request()))
	if c.Request().TLS == nil && !address.Unmap().IsLoopback() {
		return &rest.Error{Status: http.StatusForbidden, Message: "the key of an authority is accepted only with TLS (admin.tls) or from the machine of the node"}
	}
	var r authorityRequest
	if err := s.cfg.Bodies.ReadJSON(c, &r); err != nil {
		return err
	}
	a, err := certs.ParseAuthority([]byte(r.Certificate), []byte(r.Key))
	if err != nil {
		return rest.Unprocessable("the fields 'certificate' and 'key' are not an authority: %v", err)
	}
	name, err := a.Cluster()
	if err != nil {
		return rest.Unprocessable("the field 'certificate' is invalid: %v", err)
	}
	cluster, _ := s.registry.Cluster()
	switch {
	case name != cluster.Name:
		return rest.Unprocessable("the authority is that of cluster %q, and this is cluster %q", name, cluster.Name)
	case !s.cfg.Now().Before(a.Cert.NotAfter):
		return rest.Unprocessable("the certificate of the authority has expired on %s", a.Cert.NotAfter.Format(time.DateOnly))
	case s.cfg.NodeTLS.Mode != "off" && !s.cfg.NodeTLS.Managed && !s.cfg.NodeTLS.Trusts(a.Cert):
		return rest.Unprocessable("this node does not trust the authority; add its certificate to security.node-tls.ca-file of all nodes first")
	}
	key, err := a.KeyPEM()
	if err != nil {
		return err
	}
	if err := s.registry.PutAuthority(c.Request().Context(), a.Cert.Raw, string(key)); err != nil {
		return err
	}
	stored := metadata.Authority{Certificate: a.Cert.Raw}
	hash := stored.Hash()
	return rest.Respond(c, http.StatusOK, authorityView{hex.EncodeToString(hash[:]), rest.TimestampOf(a.Cert.NotAfter)})
}
