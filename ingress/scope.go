package ingress

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/flowcontrol"
	"platform/internal/errcode"
	"platform/partition/machine"
)

// errScope rejects scopes: limits exist only with flow control.
var errScope = coded(errcode.RT0024, "scoped invocations require vqueues to be enabled: flow control is off on this cluster. "+
	"On a fresh cluster, set experimental-enable-vqueues = true and experimental-enable-protocol-v7 = true in the configuration, or "+
	"PLATFORM_EXPERIMENTAL_ENABLE_VQUEUES=true and PLATFORM_EXPERIMENTAL_ENABLE_PROTOCOL_V7=true in the environment")

// scoped is a call or send in the scope that the path names.
func (s *Server) scoped(oneWay bool) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !s.cfg.FlowControl {
			return errScope
		}
		segments := c.ParamValues()
		scope, err := unescape(segments[0], c.Request().URL)
		if err != nil {
			return err
		}
		if err := checkScope(scope); err != nil {
			return err
		}
		return s.route(c, request{path: segments[1], scope: scope, oneWay: oneWay})
	}
}

func checkScope(scope string) error {
	if err := flowcontrol.CheckScope(scope); err != nil {
		return coded(errcode.RT0024, "%v", err)
	}
	return nil
}

// bodyScope returns the scope of a target body, empty for none.
func (s *Server) bodyScope(given *string) (string, error) {
	if given == nil || *given == "" {
		return "", nil
	}
	if !s.cfg.FlowControl {
		return "", errScope
	}
	return *given, checkScope(*given)
}

// Headers with the limit key and priority of an invocation within its scope, and their legacy
// names.
var (
	limitKeyHeaders = [...]string{"X-Platform-Limit-Key", "X-Restate-Limit-Key"}
	priorityHeaders = [...]string{"X-Platform-Priority", "X-Restate-Priority"}
)

// readLimitKey reads the limit key from header or query; the header takes precedence.
func readLimitKey(h http.Header, query url.Values, inv *machine.Invoke) error {
	text, given, err := oneOf(h, limitKeyHeaders)
	if err != nil {
		return err
	}
	if !given && query.Has("limit-key") {
		text, given = query.Get("limit-key"), true
	}
	if !given {
		return nil
	}
	if inv.Target.Scope == "" {
		return coded(errcode.RT0024, "limit-key requires a scope to be set: use /platform/scope/{scope}/call/… or /platform/scope/{scope}/send/…")
	}
	if _, err := flowcontrol.ParseLimitKey(text); err != nil {
		return coded(errcode.RT0024, "%v", err)
	}
	inv.LimitKey = text
	return nil
}

// readPriority reads the priority from its header.
func readPriority(h http.Header, inv *machine.Invoke) error {
	text, given, err := oneOf(h, priorityHeaders)
	if err != nil || !given {
		return err
	}
	if inv.Target.Scope == "" {
		return badRequest("x-platform-priority requires a scope: only invocations with a scope are queued")
	}
	if len(text) != 1 || text[0] < '0' || text[0] > '9' {
		return badRequest("bad x-platform-priority '%s': expected a digit from 0, the default, to 9, the highest", text)
	}
	inv.Priority = text[0] - '0'
	return nil
}

// oneOf returns the value of the first of two headers that is present. It must have one value: others
// would have no effect.
func oneOf(h http.Header, names [2]string) (value string, given bool, err error) {
	for _, name := range names {
		switch values := h[name]; len(values) {
		case 0:
		case 1:
			return values[0], true, nil
		default:
			return "", false, badRequest("bad header: '%s' is given %d times", strings.ToLower(name), len(values))
		}
	}
	return "", false, nil
}
