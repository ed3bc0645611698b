package access

import (
	"encoding/json"
	"net/http"
)

// Restrict serves requests whose sender has a permission for all services and scopes.
func Restrict(h http.Handler, a *Authenticator, permission Permission) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := a.Authenticate(r)
		switch {
		case err != nil:
			a.Rejected(r)
			w.Header().Set("WWW-Authenticate", `Bearer realm="platform"`)
			Reject(w, http.StatusUnauthorized, err.Error())
		case !p.Allows(permission):
			Reject(w, http.StatusForbidden, "this requires the role "+RolesWith(permission))
		case p.Limited():
			Reject(w, http.StatusForbidden, "this requires a token that is not limited to services or scopes")
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// Protect rejects requests from web pages of other origins, and those for other hosts.
func Protect(h http.Handler, guard *Guard) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := crossOrigin.Check(r)
		if err == nil {
			err = guard.CheckHost(r)
		}
		if err != nil {
			Reject(w, http.StatusForbidden, err.Error())
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Reject responds with an error in the format of the admin API.
func Reject(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"message": message, "code": status, "platform_code": nil}) // fails only if the client has disconnected
}
