package flow

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/flowcontrol"
)

// rulesTimeout limits the time that the response to a change of rules waits for partitions. A
// partition without a leader gets the rules with its next one, which can take much longer.
const rulesTimeout = time.Second

// putRules adds or replaces the rules of an array atomically.
func (s *Server) putRules(c echo.Context) error {
	body, err := s.cfg.Bodies.ReadRawJSON(c)
	if err != nil {
		return err
	}
	changes, err := decodeEach(body, (*ruleChange).change)
	if err != nil {
		return err
	}
	rest.Concerns(c, listed(changes, func(r flowcontrol.Change) flowcontrol.Pattern { return r.Pattern }))
	rules, err := s.changeRules(c.Request().Context(), changes)
	if err != nil {
		return err
	}
	list := make([]ruleView, len(rules))
	for i := range rules {
		list[i] = viewRule(&rules[i])
	}
	return rest.Respond(c, http.StatusOK, list)
}

// putRule adds or replaces the rule of the path.
func (s *Server) putRule(c echo.Context) error {
	pattern, err := patternOf(c)
	if err != nil {
		return err
	}
	body, err := s.cfg.Bodies.ReadRawJSON(c)
	if err != nil {
		return err
	}
	rule := ruleChange{Pattern: pattern.String()}
	if err := decodeObject(body, &rule); err != nil {
		return err
	}
	if rule.Pattern != pattern.String() {
		return rest.Unprocessable("the field 'pattern' is '%s', but the path is that of '%s'; leave the field out", rule.Pattern, pattern)
	}
	change, err := rule.change()
	if err != nil {
		return err
	}
	rules, err := s.changeRules(c.Request().Context(), []flowcontrol.Change{change})
	if err != nil {
		return err
	}
	return rest.Respond(c, http.StatusOK, viewRule(&rules[0]))
}

// changeRules stores rules and waits until the partitions apply them.
func (s *Server) changeRules(ctx context.Context, changes []flowcontrol.Change) ([]flowcontrol.Rule, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	rules, err := s.registry.PutRules(ctx, changes)
	if err != nil {
		return nil, err
	}
	s.rulesChanged(ctx)
	return rules, nil
}

// deleteRules deletes the rules of an array atomically.
func (s *Server) deleteRules(c echo.Context) error {
	body, err := s.cfg.Bodies.ReadRawJSON(c)
	if err != nil {
		return err
	}
	removals, err := decodeEach(body, (*ruleRemoval).removal)
	if err != nil {
		return err
	}
	rest.Concerns(c, listed(removals, func(r flowcontrol.Removal) flowcontrol.Pattern { return r.Pattern }))
	removed := []flowcontrol.Pattern{}
	if len(removals) > 0 {
		if removed, err = s.registry.DeleteRules(c.Request().Context(), removals); err != nil {
			return err
		}
		s.rulesChanged(c.Request().Context())
	}
	list := make([]string, len(removed))
	for i, p := range removed {
		list[i] = p.String()
	}
	return rest.Respond(c, http.StatusOK, list)
}

// listed returns the patterns of several rules for the audit log.
func listed[T any](rules []T, pattern func(T) flowcontrol.Pattern) string {
	patterns := make([]string, len(rules))
	for i, r := range rules {
		patterns[i] = pattern(r).String()
	}
	return strings.Join(patterns, ", ")
}

// deleteRule deletes the rule of the path.
func (s *Server) deleteRule(c echo.Context) error {
	pattern, err := patternOf(c)
	if err != nil {
		return err
	}
	removal := flowcontrol.Removal{Pattern: pattern}
	if values, given := c.QueryParams()["expected_version"]; given {
		text := values[len(values)-1]
		version, err := strconv.ParseUint(text, 10, 32)
		if err != nil || version == 0 {
			return rest.BadRequest("The query parameter 'expected_version' is invalid: %q is not the version of a rule, a number from 1", text)
		}
		removal.Precondition = flowcontrol.Precondition{Kind: flowcontrol.Matches, Version: uint32(version)}
	}
	removed, err := s.registry.DeleteRules(c.Request().Context(), []flowcontrol.Removal{removal})
	if err != nil {
		return err
	}
	if len(removed) == 0 {
		return noSuchRule(pattern)
	}
	s.rulesChanged(c.Request().Context())
	return rest.Done(c, http.StatusOK)
}

// rulesChanged waits for a limited time until the partitions led by this node have the newest
// rules, so that a change is usually effective when the client receives the response.
func (s *Server) rulesChanged(ctx context.Context) {
	book, _ := s.registry.Rules()
	s.log.Info("rules of flow control changed", "rule_book_version", book.Version, "rules", len(book.Rules))
	if s.cfg.AwaitRules == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rulesTimeout)
	defer cancel()
	s.cfg.AwaitRules(ctx, book.Version)
}

// listRules responds with the rule book, sorted by pattern.
func (s *Server) listRules(c echo.Context) error {
	book, _ := s.registry.Rules()
	view := ruleBookView{Version: book.Version, Rules: make([]ruleView, len(book.Rules))}
	for i := range book.Rules {
		view.Rules[i] = viewRule(&book.Rules[i])
	}
	return rest.Respond(c, http.StatusOK, view)
}

func (s *Server) getRule(c echo.Context) error {
	pattern, err := patternOf(c)
	if err != nil {
		return err
	}
	book, _ := s.registry.Rules()
	rule := book.Find(pattern)
	if rule == nil {
		return noSuchRule(pattern)
	}
	return rest.Respond(c, http.StatusOK, viewRule(rule))
}

// patternOf returns the pattern in the path, whose slashes are encoded as %2F.
func patternOf(c echo.Context) (flowcontrol.Pattern, error) {
	pattern, err := flowcontrol.ParsePattern(c.Param("pattern"))
	if err != nil {
		return pattern, rest.InvalidField("pattern", err)
	}
	return pattern, nil
}

func noSuchRule(p flowcontrol.Pattern) error {
	return &rest.Error{Status: http.StatusNotFound, Message: "The requested rule '" + p.String() + "' does not exist"}
}
