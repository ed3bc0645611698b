package tokens

import (
	"platform/admin/rest"
	"platform/internal/access"
	"platform/internal/access/oidc"
)

// Routes returns the routes of tokens, logins and join tokens.
func (s *Server) Routes() []rest.Route {
	return []rest.Route{
		rest.Post("/tokens", access.Secure, s.createToken),
		rest.Get("/tokens", access.Secure, s.listTokens),
		rest.Delete("/tokens/:token", access.Secure, s.revokeToken),
		rest.Get("/login", access.Public, s.loginOptions),
		rest.Get(startPath, access.Public, s.startLogin),
		rest.Get(oidc.CallbackPath, access.Public, s.finishLogin),
		rest.Post("/login/token", access.Public, s.exchangeToken),
		rest.Post("/logout", access.Public, s.logout),
		rest.Get("/whoami", access.Public, s.whoAmI),
		rest.Put("/cluster/authority", access.Administer, s.putAuthority),
		rest.Post("/cluster/join-tokens", access.Administer, s.createJoinToken),
		rest.Get("/cluster/join-tokens", access.Secure, s.listJoinTokens),
		rest.Delete("/cluster/join-tokens/:join_token", access.Secure, s.revokeJoinToken),
	}
}
