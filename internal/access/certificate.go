package access

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
)

// Certificates maps certificates of clients to roles, by the URIs, host names and e-mail addresses
// in them. The common name does not count.
type Certificates struct{ rules []certificateRule }

type certificateRule struct {
	pattern string // may end in *
	roles   []Role
}

// NewCertificates parses rules: names, which may end in *, with roles separated by commas.
func NewCertificates(rules map[string]string) (*Certificates, error) {
	c := &Certificates{}
	for pattern, names := range rules {
		roles, err := ParseRoles(strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' }))
		if err != nil {
			return nil, fmt.Errorf("roles of %q: %w", pattern, err)
		}
		if stem := strings.TrimSuffix(pattern, "*"); stem == "" || strings.Contains(stem, "*") {
			return nil, fmt.Errorf("%q is not a name in certificates; only its end can be *", pattern)
		}
		c.rules = append(c.rules, certificateRule{pattern, roles})
	}
	return c, nil
}

// Principal returns the principal of a verified certificate; nil if no rule matches it.
func (c *Certificates) Principal(certificate *x509.Certificate) *Principal {
	var p *Principal
	names := slices.Concat(certificate.DNSNames, certificate.EmailAddresses)
	for _, uri := range certificate.URIs {
		names = append(names, uri.String())
	}
	for _, name := range names {
		for _, rule := range c.rules {
			if !rule.matches(name) {
				continue
			}
			if p == nil {
				p = &Principal{Name: certificatePrefix + name, Kind: KindCertificate}
			}
			for _, role := range rule.roles {
				if !slices.Contains(p.Roles, role) {
					p.Roles = append(p.Roles, role)
				}
			}
		}
	}
	return p
}

func (r *certificateRule) matches(name string) bool {
	if stem, prefix := strings.CutSuffix(r.pattern, "*"); prefix {
		return strings.HasPrefix(name, stem)
	}
	return name == r.pattern
}
