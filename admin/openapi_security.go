package admin

import (
	"net/http"

	"platform/admin/openapi"
	"platform/internal/access"
)

var securityOperations = map[string]operation{
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
	"GET /audit": {
		ID: "list_audit", Tag: "security", Summary: "List records of the audit log, the newest first",
		Query: []object{
			openapi.QueryParameter("before", "Only records with smaller numbers", object{"type": "integer", "minimum": 1}),
			openapi.QueryParameter("limit", "Number of records", object{"type": "integer", "minimum": 1, "maximum": maxAuditPage, "default": 100}),
		},
		Responses: openapi.OK("The records", openapi.ListOf[auditView]("records")), Errors: []int{400, 401, 403},
	},
	"GET /audit/verification": {
		ID: "verify_audit", Tag: "security", Summary: "Verify the hashes of the audit log",
		Responses: openapi.OK("The result", auditVerification{}), Errors: []int{401, 403},
	},
}

var securityFieldMeanings = map[string]string{
	"CreateTokenRequest.name":       "Who or what uses the token; unique.",
	"CreateTokenRequest.services":   "Limits the token to these services.",
	"CreateTokenRequest.scopes":     "Limits the token to these scopes.",
	"CreateTokenRequest.expires_in": "How long the token is valid; without it, until it is revoked.",
	"CreatedToken.token":            "The token itself.",
	"LoggedOut.logout_url":          "Page of the identity provider at which the user can end the session there as well. Absent if the provider announces none.",
	"Session.token":                 "Token of the session.",
	"Token.session":                 "Whether it is the login of a user with the identity provider.",
	"Identity.session":              "Whether the caller logged in through the identity provider.",
	"OIDCLogin.start_url":           "Page that begins a login in a browser. Absent if browsers cannot log in.",
	"OIDCLogin.cli_client_id":       "Client for the device flow. Absent if the command line cannot log in.",
	"ExchangeTokenRequest.id_token": "ID token for the client of the command line, at most ten minutes old.",
	"Identity.token_required":       "Whether requests without a token are refused.",
	"Identity.security_mode":        "security.mode of the node.",
	"AuditRecord.sequence":          "Number of the record.",
	"AuditRecord.invocations":       "Invocations of a batch.",
	"AuditRecord.omitted":           "Number of requests of the principal to this node that changed nothing and were not recorded since its last record.",
	"AuditVerification.deleted":     "Number of records that were deleted to make room.",
	"AuditRecord.action":            "Method and route.",
	"AuditRecord.object":            "Path and query of the request.",
	"AuditRecord.status":            "HTTP status, of actions that did not change the metadata.",
	"AuditRecord.outcome":           "Why it was refused or failed; dry run if it only asked what would change.",
	"AuditRecord.before_sha256":     "Digest of the changed records of the metadata before the change.",
	"AuditRecord.after_sha256":      "The same after the change.",
	"AuditRecord.previous_hash":     "Hash of the record before this one.",
	"AuditVerification.hash":        "Hash of the last record. A copy kept elsewhere proves later that the records up to it were not replaced.",
}

var specialSecurityFields = map[string]object{
	"CreateTokenRequest.roles": {"type": "array", "items": object{"type": "string", "enum": access.Roles}, "minItems": 1},
	"Identity.roles":           {"type": "array", "items": object{"type": "string", "enum": access.Roles}},
	"Identity.permissions":     {"type": "array", "items": object{"type": "string", "enum": access.Permissions}},
}
