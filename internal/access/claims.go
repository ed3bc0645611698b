package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Claims maps the claims of tokens of an identity provider to a name and roles.
type Claims struct {
	subject string
	paths   []string // of the claims whose values determine the roles
	roles   map[string][]Role
}

// maxSubject bounds the size of a name.
const maxSubject = 200

// NewClaims returns a mapping. subject is the claim with the name, sub if it is empty; claims are those,
// separated by commas, whose values roles maps to names of roles, separated by commas. With dots, a claim
// is part of another one.
func NewClaims(subject, claims string, roles map[string]string) (*Claims, error) {
	paths := words(claims)
	if len(paths) == 0 || len(roles) == 0 {
		return nil, errors.New("roles-claim and roles are required: without them every account of the issuer could use this server")
	}
	if subject == "" {
		subject = "sub"
	}
	c := &Claims{subject: subject, paths: paths, roles: map[string][]Role{}}
	for value, names := range roles {
		parsed, err := ParseRoles(words(names))
		if err != nil {
			return nil, fmt.Errorf("roles of %q: %w", value, err)
		}
		c.roles[value] = parsed
	}
	return c, nil
}

// words splits a list that is separated by commas or spaces.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// Subject returns the name of an account; empty if it has none that can be used. A name must not
// look like another one: where a header or a terminal shows it, spaces around it and characters
// that control the output disappear.
func (c *Claims) Subject(claims map[string]any) string {
	name, _ := claims[c.subject].(string)
	if len(name) > maxSubject || strings.TrimSpace(name) != name || !Visible(name) {
		return ""
	}
	return name
}

// Visible reports whether a text has no characters that cannot be seen, which could make two names
// look alike.
func Visible(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) })
}

// Roles returns the roles of an account; none if its claims are not mapped to any.
func (c *Claims) Roles(claims map[string]any) (roles []Role) {
	for _, path := range c.paths {
		for _, value := range claimValues(claims, path) {
			for _, role := range c.roles[value] {
				if !slices.Contains(roles, role) {
					roles = append(roles, role)
				}
			}
		}
	}
	return roles
}

// Present reports whether an account has any of the claims that determine its roles.
func (c *Claims) Present(claims map[string]any) bool {
	return slices.ContainsFunc(c.paths, func(path string) bool { return claimValue(claims, path) != nil })
}

// Unverified reports whether an e-mail address that the provider has not verified would determine the
// name or the roles: with many providers, users can enter any address.
func (c *Claims) Unverified(claims map[string]any) bool {
	return (c.subject == emailClaim || slices.Contains(c.paths, emailClaim)) && claims["email_verified"] != true
}

const emailClaim = "email"

// claimValue returns a claim; nil if there is none.
func claimValue(claims map[string]any, path string) any {
	if direct, ok := claims[path]; ok {
		return direct // names of claims may have dots
	}
	var value any = claims
	for part := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		value = object[part]
	}
	return value
}

// claimValues returns the texts of a claim: a string, words separated by spaces, or a list.
func claimValues(claims map[string]any, path string) (values []string) {
	switch v := claimValue(claims, path).(type) {
	case string:
		return strings.Fields(v)
	case []any:
		for _, element := range v {
			if text, ok := element.(string); ok {
				values = append(values, text)
			}
		}
	}
	return values
}
