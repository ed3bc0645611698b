package tokens

import (
	"bytes"
	"errors"
	"html/template"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/access/oidc"
)

// loginFailure returns the response to an error of a login, nil if the error is unexpected.
func loginFailure(err error) *rest.Error {
	if f, ok := errors.AsType[*rest.Error](err); ok {
		return f
	}
	if refused, ok := errors.AsType[*oidc.RefusedError](err); ok {
		status := http.StatusBadRequest
		if refused.Account != "" {
			status = http.StatusForbidden
		}
		return &rest.Error{Status: status, Message: refused.Message}
	}
	if errors.Is(err, oidc.ErrUnavailable) {
		return &rest.Error{
			Status: http.StatusServiceUnavailable, Retry: true, After: 10 * time.Second,
			Message: "the identity provider is not available; existing sessions and tokens remain valid; see the log of the server for the reason",
		}
	}
	return nil
}

// loginPage reports to the user of a browser why a login failed.
var loginPage = template.Must(template.New("login").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Login failed</title><link rel="stylesheet" href="/ui/app.css"></head>
<body><main class="login"><div>
<h1>Login failed</h1>
{{if .Account}}<p>Account: <b>{{.Account}}</b></p>{{end}}
<p role="alert">{{.Message}}.</p>
<p><a href="{{.Retry}}">Try again</a> · <a href="/ui/">Log in with a token</a></p>
</div></main></body>
</html>
`))

// loginFailed shows why a login failed. Unexpected errors are logged, like those of other routes.
func (s *Server) loginFailed(c echo.Context, err error) error {
	f := loginFailure(err)
	if f == nil {
		f = s.cfg.Explain(c.Request(), err)
	}
	if errors.Is(err, oidc.ErrUnavailable) {
		s.log.Warn("login with the identity provider failed", "err", err)
	}
	page := struct{ Message, Account, Retry string }{Message: f.Message, Retry: retryAddress(c)}
	if refused, ok := errors.AsType[*oidc.RefusedError](err); ok {
		page.Account = refused.Account
	}
	var out bytes.Buffer
	if err := loginPage.Execute(&out, page); err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	return c.HTMLBlob(f.Status, out.Bytes())
}
