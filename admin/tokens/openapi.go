package tokens

import (
	"net/http"
	"reflect"

	"platform/admin/openapi"
	"platform/internal/access"
)

// Short names for the tables of descriptions.
type (
	object    = openapi.Object
	operation = openapi.Operation
	responses = []openapi.Response
)

// Description describes the routes for the OpenAPI document of the admin API.
var Description = openapi.Part{
	Operations: operations,
	Schemas:    openapi.Schemas{Names: componentNames, Fields: fieldSchemas, FieldMeanings: fieldMeanings},
}

var componentNames = map[reflect.Type]string{
	reflect.TypeFor[authorityRequest](): "PutAuthorityRequest",
	reflect.TypeFor[authorityView]():    "Authority",
	reflect.TypeFor[joinTokenRequest](): "CreateJoinTokenRequest",
	reflect.TypeFor[joinTokenView]():    "JoinToken",
	reflect.TypeFor[createdJoinToken](): "CreatedJoinToken",
	reflect.TypeFor[tokenRequest]():     "CreateTokenRequest",
	reflect.TypeFor[tokenView]():        "Token",
	reflect.TypeFor[createdToken]():     "CreatedToken",
	reflect.TypeFor[whoAmIView]():       "Identity",
	reflect.TypeFor[loginView]():        "LoginOptions",
	reflect.TypeFor[oidcView]():         "OIDCLogin",
	reflect.TypeFor[exchangeRequest]():  "ExchangeTokenRequest",
	reflect.TypeFor[sessionView]():      "Session",
}

var operations = map[string]operation{
	"POST /tokens": {
		ID: "create_token", Tag: "security", Summary: "Create a token. Its text is in the response and cannot be read again. Needs feature level 4",
		Body: tokenRequest{}, Responses: responses{openapi.Returns(http.StatusCreated, "The token", createdToken{})}, Errors: []int{400, 401, 403, 409, 415, 422, 503},
	},
	"GET /tokens": {
		ID: "list_tokens", Tag: "security", Summary: "List the tokens by name",
		Responses: openapi.OK("The tokens", openapi.ListOf[tokenView]("tokens")), Errors: []int{401, 403},
	},
	"DELETE /tokens/:token": {
		ID: "revoke_token", Tag: "security", Summary: "Revoke a token. All nodes that are connected refuse it when the response arrives",
		Responses: openapi.OK("The revoked token", tokenView{}), Errors: []int{401, 403, 404, 503},
	},
	"GET /login": {
		ID: "login_options", Tag: "security", Summary: "Show how users can log in with an identity provider",
		Responses: openapi.OK("The identity provider; none if users log in with tokens only", loginView{}),
	},
	"GET /login/start": {
		ID: "start_login", Tag: "security", Summary: "Begin a login in a browser, which is sent to the identity provider",
		Query: []object{
			openapi.QueryParameter("return", "Page of the web UI to show after the login", object{"type": "string"}),
			openapi.QueryParameter("choose", "Not empty: the provider offers other accounts than the one that is logged in there", object{"type": "string"}),
		},
		Responses: responses{openapi.Returns(http.StatusSeeOther, "The page of the identity provider", nil)},
		Errors:    []int{404, 429, 503},
	},
	"GET /login/callback": {
		ID: "finish_login", Tag: "security", Summary: "Complete a login in a browser: the redirect URI for the identity provider. The session is in a cookie", AnyQuery: true,
		Responses: responses{openapi.Returns(http.StatusSeeOther, "The page of the web UI", nil)},
		Errors:    []int{400, 403, 404, 429, 503},
	},
	"POST /login/token": {
		ID: "exchange_token", Tag: "security", Summary: "Log in with an ID token of the identity provider for the client of the command line. Needs feature level 4",
		Body: exchangeRequest{}, Responses: responses{openapi.Returns(http.StatusCreated, "The session", sessionView{})}, Errors: []int{400, 403, 404, 415, 422, 429, 503},
	},
	"POST /logout": {
		ID: "logout", Tag: "security", Summary: "Revoke the session of the caller, and remove its cookie. Other tokens remain valid",
		Responses: openapi.OK("Whether there was a session", loggedOut{}), Errors: []int{503},
	},
	"GET /whoami": {
		ID: "who_am_i", Tag: "security", Summary: "Show the permissions of the caller",
		Responses: openapi.OK("Roles and permissions; none without a valid token if one is required", whoAmIView{}),
	},
	"PUT /cluster/authority": {
		ID: "put_authority", Tag: "cluster", Summary: "Store the authority that issues the certificates of nodes, its key encrypted. Needs TLS or a client on the same machine, and feature level 4",
		Body:      authorityRequest{},
		Responses: openapi.OK("The authority", authorityView{}), Errors: []int{400, 403, 409, 415, 422, 503},
	},
	"POST /cluster/join-tokens": {
		ID: "create_join_token", Tag: "cluster", Summary: "Create a token with which one new node gets its certificate. Its text is in the response and cannot be read again. Needs feature level 4",
		Body:      joinTokenRequest{},
		Responses: responses{openapi.Returns(http.StatusCreated, "The join token", createdJoinToken{})}, Errors: []int{400, 409, 415, 422, 503},
	},
	"GET /cluster/join-tokens": {
		ID: "list_join_tokens", Tag: "cluster", Summary: "List the join tokens, the oldest first",
		Responses: openapi.OK("The join tokens", openapi.ListOf[joinTokenView]("join_tokens")),
	},
	"DELETE /cluster/join-tokens/:join_token": {
		ID: "revoke_join_token", Tag: "cluster", Summary: "Revoke a join token. A certificate that was issued for it remains valid",
		Responses: openapi.OK("The revoked join token", joinTokenView{}), Errors: []int{404, 503},
	},
}

var fieldMeanings = map[string]string{
	"CreateTokenRequest.name":           "Who or what uses the token; unique.",
	"CreateTokenRequest.services":       "Limits the token to these services.",
	"CreateTokenRequest.scopes":         "Limits the token to these scopes.",
	"CreateTokenRequest.expires_in":     "How long the token is valid; without it, until it is revoked.",
	"CreatedToken.token":                "The token itself.",
	"LoggedOut.logout_url":              "Page of the identity provider at which the user can end the session there as well. Absent if the provider announces none.",
	"Session.token":                     "Token of the session.",
	"Token.session":                     "Whether it is the login of a user with the identity provider.",
	"Identity.session":                  "Whether the caller logged in through the identity provider.",
	"OIDCLogin.start_url":               "Page that begins a login in a browser. Absent if browsers cannot log in.",
	"OIDCLogin.cli_client_id":           "Client for the device flow. Absent if the command line cannot log in.",
	"ExchangeTokenRequest.id_token":     "ID token for the client of the command line, at most ten minutes old.",
	"Identity.token_required":           "Whether requests without a token are rejected.",
	"Identity.security_mode":            "security.mode of the node.",
	"PutAuthorityRequest.certificate":   "Certificate of the authority in PEM format.",
	"PutAuthorityRequest.key":           "Its key in PEM format. It is stored only encrypted.",
	"Authority.sha256":                  "Hash of the certificate, by which new nodes recognize the cluster.",
	"CreateJoinTokenRequest.node":       "The only node that may use the token, also one that is a member and has lost its certificate. Without it, any new node may.",
	"CreateJoinTokenRequest.expires_in": "How long the token is valid, at most 7d; 1h without it.",
	"CreatedJoinToken.token":            "The token itself.",
	"JoinToken.node":                    "The only node that may use it. Absent: any new node.",
	"JoinToken.used_by":                 "The node that has used it.",
}

var fieldSchemas = map[string]object{
	"CreateTokenRequest.roles": {"type": "array", "items": object{"type": "string", "enum": access.Roles}, "minItems": 1},
	"Identity.roles":           {"type": "array", "items": object{"type": "string", "enum": access.Roles}},
	"Identity.permissions":     {"type": "array", "items": object{"type": "string", "enum": access.Permissions}},
}
