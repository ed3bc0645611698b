package config

import (
	"net"
	"time"

	"platform/internal/units"
)

// Security configures the authentication of clients and of nodes.
type Security struct {
	Mode           SecurityMode `key:"mode" help:"which ports require a token; default: the admin API, unless it is bound to a loopback address; open: none; strict: all"`
	AdminTokenFile string       `key:"admin-token-file" help:"file with a token for the administrator, of 32 bytes or more (default: variable PLATFORM_ADMIN_TOKEN, else the node creates admin.token in its data directory if it requires tokens)"`

	AuditReads bool `key:"audit-reads" help:"record in the audit log who reads payloads: state, records of topics, and SQL queries of clients that may read payloads; each such read takes a log entry of the metadata"`

	// Certificates maps client certificates to roles.
	Certificates map[string]string `key:"certificates" help:"roles, separated by commas, of clients whose certificate names a URI, host or e-mail address, which may end in *; for listeners with client-ca-file"`

	JWT     JWT     `key:"jwt"`
	OIDC    OIDC    `key:"oidc"`
	NodeTLS NodeTLS `key:"node-tls"`
	Secrets Secrets `key:"secrets"`
}

// Secrets configures the encryption of secrets in the metadata.
type Secrets struct {
	KeyFile string `key:"key-file" help:"file with keys for the secrets in the metadata, such as headers of deployments and credentials of Kafka clusters: 32 bytes in base64 each, one per line; the first encrypts, all decrypt; read again when it changes (default: secrets are not encrypted)"`
	Keys    string `key:"keys" help:"the same keys, separated by commas, instead of key-file; env:NAME refers to a variable"`
}

// NodeTLS secures the connections between nodes.
type NodeTLS struct {
	Mode          TLSMode `key:"mode" help:"whether connections between nodes use TLS with certificates on both sides: off, allow or require; a running cluster is switched node by node from off to allow, and then to require"`
	CertFile      string  `key:"cert-file" help:"certificate of this node, issued by platform cluster ca node; read again when it changes (default: the node gets one from the cluster, in its data directory, and renews it)"`
	KeyFile       string  `key:"key-file" help:"key of the certificate; others must not be able to read it"`
	CAFile        string  `key:"ca-file" help:"certificates of the authorities whose nodes are trusted"`
	PacketKeyFile string  `key:"packet-key-file" help:"keys of gossip packets, one per line in base64; the first encrypts; written by platform cluster ca"`

	JoinTokenFile       string         `key:"join-token-file" help:"file with the join token with which a new node gets its certificate from the members at metadata-client.addresses; not used once it has one; others must not be able to read the file"`
	JoinToken           string         `key:"join-token" help:"the join token itself, instead of join-token-file; env:NAME refers to a variable"`
	CertificateValidity units.Duration `key:"certificate-validity" help:"validity of the certificates that this node issues to others for join tokens and renewals, from 1m to 1y; a node renews its certificate when a third of it is left"`
}

// Managed reports whether the node gets its certificate from the cluster.
func (t *NodeTLS) Managed() bool { return t.Mode != TLSOff && t.CertFile == "" }

// HasJoinToken reports whether there is a join token.
func (t *NodeTLS) HasJoinToken() bool { return t.JoinToken != "" || t.JoinTokenFile != "" }

// ListenerTLS configures TLS of a listener for clients.
type ListenerTLS struct {
	CertFile     string `key:"cert-file" help:"certificate of the server, followed by intermediate ones; without it the listener uses no TLS; read again when it changes and on SIGHUP"`
	KeyFile      string `key:"key-file" help:"key of the certificate; others must not be able to read it"`
	ClientCAFile string `key:"client-ca-file" help:"certificates of the authorities that issue the certificates of clients"`

	RequireClientCert bool `key:"require-client-certificate" help:"accept only clients with a certificate; otherwise one is verified if the client has it"`
}

// Enabled reports whether the listener uses TLS.
func (t *ListenerTLS) Enabled() bool { return t.CertFile != "" }

// AdvertisedURL is the URL of the listener, https with TLS.
func (i *Ingress) AdvertisedURL(bound net.Addr) string { return i.advertisedURL(bound, i.TLS.scheme()) }

// AdvertisedURL is the URL of the listener, https with TLS.
func (a *Admin) AdvertisedURL(bound net.Addr) string { return a.advertisedURL(bound, a.TLS.scheme()) }

func (t *ListenerTLS) scheme() string {
	if t.Enabled() {
		return "https"
	}
	return "http"
}

// listenerTLS checks that the files belong together.
func (l *loader) listenerTLS(prefix string, t ListenerTLS) {
	l.check(prefix+"key-file", (t.KeyFile != "") == t.Enabled(), "a file together with cert-file", t.KeyFile)
	l.check(prefix+"client-ca-file", t.ClientCAFile == "" || t.Enabled(), "a file only together with cert-file", t.ClientCAFile)
	l.check(prefix+"require-client-certificate", !t.RequireClientCert || t.ClientCAFile != "", "false without client-ca-file", t.RequireClientCert)
}

// TLSMode determines which connections between nodes use TLS.
type TLSMode string

// The modes.
const (
	TLSOff     TLSMode = "off"     // no connections
	TLSAllow   TLSMode = "allow"   // connections between nodes that support it
	TLSRequire TLSMode = "require" // all connections
)

// UnmarshalText parses a mode.
func (m *TLSMode) UnmarshalText(text []byte) error { return choose(m, text, m.choices()) }

func (m *TLSMode) choices() []TLSMode { return []TLSMode{TLSOff, TLSAllow, TLSRequire} }
func (m *TLSMode) expected() string   { return oneOf(m.choices()) }

// nodeTLS checks that the keys that a mode requires are set.
func (l *loader) nodeTLS(c NodeTLS, gossipKey string) {
	const prefix = "security.node-tls."
	l.check(prefix+"join-token", c.JoinToken == "" || c.JoinTokenFile == "", "empty together with join-token-file", hidden)
	validity := c.CertificateValidity
	l.check(prefix+"certificate-validity", validity.Std() >= time.Minute && validity.Std() <= 366*24*time.Hour, "a duration from 1m to 1y", validity)
	if c.Mode == TLSOff || c.CertFile == "" && c.KeyFile == "" && c.CAFile == "" && c.PacketKeyFile == "" {
		return // without certificates, or with those of the cluster
	}
	for _, file := range []struct{ key, path string }{{"cert-file", c.CertFile}, {"key-file", c.KeyFile}, {"ca-file", c.CAFile}} {
		l.check(prefix+file.key, file.path != "", "a file, since mode is "+string(c.Mode)+" (platform cluster ca --help)", file.path)
	}
	if c.Mode == TLSRequire {
		l.check(prefix+"packet-key-file", c.PacketKeyFile != "" || gossipKey != "",
			"a file, since mode is require and gossip packets are not part of a connection (platform cluster ca --help)", c.PacketKeyFile)
	}
}

// oidc checks that the keys that a provider requires are set; access/oidc checks their values.
func (l *loader) oidc(c OIDC) {
	const prefix = "security.oidc."
	if c.Issuer == "" {
		l.check(prefix+"issuer", c.ClientID == "" && c.CLIClientID == "" && len(c.Roles) == 0, "the URL of the provider, since other keys of the section are set", c.Issuer)
		return
	}
	l.check(prefix+"client-id", c.ClientID != "" || c.CLIClientID != "", "the client that is registered at the provider, unless cli-client-id is set", c.ClientID)
	l.check(prefix+"client-secret", c.ClientSecret == "" || c.ClientID != "", "empty without client-id", hidden)
	l.check(prefix+"external-url", c.ClientID == "" || c.ExternalURL != "", "an address such as https://platform.example.com, since client-id is set", c.ExternalURL)
	l.check(prefix+"roles-claim", c.RolesClaim != "", "a claim such as groups: without it every account of the provider could use this server", c.RolesClaim)
	l.check(prefix+"roles", len(c.Roles) > 0, "roles for values of roles-claim: without them no user could log in", "{}")
	l.check(prefix+"session-lifetime", c.SessionLifetime.Std() >= time.Minute && c.SessionLifetime.Std() <= 30*24*time.Hour, "a duration from 1m to 30d", c.SessionLifetime)
}
