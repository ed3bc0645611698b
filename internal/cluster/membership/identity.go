package membership

import (
	"crypto/sha256"
	"net"
	"net/netip"
	"strconv"
)

// identity is a node's address in the gossip. It has the form of an IPv6 address because
// memberlist addresses nodes by IP and detects name conflicts by comparing addresses.
type identity [16]byte

// identityPort is the port of all identities; the actual port is part of the advertised
// address.
const identityPort = 1

// identityOf returns the identity of a data directory. It lies in fd00::/8, the range of
// locally assigned addresses.
func identityOf(name, incarnation string) identity {
	return hashIdentity(0xfd, name+"\x00"+incarnation)
}

// seedIdentity returns an identity for any node that answers at hostport.
func seedIdentity(hostport string) identity { return hashIdentity(0xfc, hostport) }

func hashIdentity(kind byte, s string) identity {
	sum := sha256.Sum256([]byte(s))
	id := identity(sum[:16])
	id[0] = kind
	return id
}

func (id identity) ip() net.IP { return net.IP(id[:]) }

// String returns the identity as a memberlist address.
func (id identity) String() string {
	return net.JoinHostPort(id.ip().String(), strconv.Itoa(identityPort))
}

// parseIdentity parses a memberlist address.
func parseIdentity(address string) (identity, bool) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return identity{}, false
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return identity{}, false
	}
	return ip.As16(), true
}

// clusterHash identifies a cluster on the wire.
func clusterHash(name string) [16]byte {
	sum := sha256.Sum256([]byte("cluster\x00" + name))
	return [16]byte(sum[:16])
}
