package config

// Security is how the node proves who it is, and who others are.
type Security struct {
	NodeTLS NodeTLS `key:"node-tls"`
}

// NodeTLS secures the connections between nodes.
type NodeTLS struct {
	Mode          TLSMode `key:"mode" help:"off, allow or require: whether connections between nodes use TLS with certificates on both sides; a running cluster is switched node by node from off to allow, and then to require"`
	CertFile      string  `key:"cert-file" help:"certificate of this node, issued by platform cluster ca node; read again when it changes"`
	KeyFile       string  `key:"key-file" help:"key of the certificate; others must not be able to read it"`
	CAFile        string  `key:"ca-file" help:"certificates of the authorities whose nodes are trusted"`
	PacketKeyFile string  `key:"packet-key-file" help:"keys of gossip packets, one per line in base64; the first encrypts; written by platform cluster ca"`
}

// TLSMode is whether connections between nodes use TLS.
type TLSMode string

// The modes.
const (
	TLSOff     TLSMode = "off"     // none do
	TLSAllow   TLSMode = "allow"   // those between nodes that support it
	TLSRequire TLSMode = "require" // all do
)

// UnmarshalText reads one of the modes.
func (m *TLSMode) UnmarshalText(text []byte) error { return choose(m, text, m.choices()) }

func (m *TLSMode) choices() []TLSMode { return []TLSMode{TLSOff, TLSAllow, TLSRequire} }
func (m *TLSMode) expected() string   { return oneOf(m.choices()) }

// nodeTLS checks that what a mode needs is set.
func (l *loader) nodeTLS(c NodeTLS, gossipKey string) {
	const prefix = "security.node-tls."
	if c.Mode == TLSOff {
		return
	}
	for _, file := range []struct{ key, path string }{{"cert-file", c.CertFile}, {"key-file", c.KeyFile}, {"ca-file", c.CAFile}} {
		l.check(prefix+file.key, file.path != "", "a file, since mode is "+string(c.Mode)+" (platform cluster ca --help)", file.path)
	}
	if c.Mode == TLSRequire {
		l.check(prefix+"packet-key-file", c.PacketKeyFile != "" || gossipKey != "",
			"a file, since mode is require and gossip packets are not part of a connection (platform cluster ca --help)", c.PacketKeyFile)
	}
}
