package egress

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

func rules(t *testing.T, list ...string) Rules {
	r, err := ParseRules(list)
	require.NoError(t, err)
	return r
}

// spellings are forms of addresses that no rule can permit, known from bypasses of such filters. No
// server should ever listen on the port.
var spellings = []string{
	"169.254.169.254", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[0:0:0:0:0:ffff:a9fe:a9fe]", "[::169.254.169.254]", "[::a9fe:a9fe]",
	"[64:ff9b::169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[2002:a9fe:a9fe::1]", "[::ffff:0:169.254.169.254]",
	"[2001:0:0:0:0:0:5601:5601]", "[fe80::5efe:169.254.169.254]", "[2001:db8::5efe:a9fe:a9fe]", "[2001:db8::200:5efe:a9fe:a9fe]",
	"169.254.170.2", "169.254.0.1", "[fe80::1]", "[fe80::a9fe:a9fe%1]", "[febf::1]", "[fd00:ec2::254]", "[fd00:0ec2:0:0:0:0:0:0254]", "[fd20:ce::254]",
	"100.100.100.200", "[::ffff:100.100.100.200]", "168.63.129.16", "[::ffff:168.63.129.16]", "192.0.0.192", "[64:ff9b::6464:64c8]",
	"0.0.0.0", "0.1.2.3", "[::]", "[::ffff:0.0.0.0]", "[0000::]", "[64:ff9b::]", "[2002::]",
	"224.0.0.1", "239.255.255.250", "255.255.255.255", "[ff02::1]", "[ff05::1:3]", "[::ffff:224.0.0.1]",
}

// names are spellings that a proxy or the C library resolves to such an address.
var names = []string{
	"2852039166", "0xa9fea9fe", "0XA9FEA9FE", "025177524776", "0251.0376.0251.0376", "0xa9.0xfe.0xa9.0xfe", "169.254.43518", "169.16689662", "0xa9.254.0251.254",
	"0", "0x0", "00.0.0.0", "169.254.169.254.", "metadata.google.internal", "METADATA.GOOGLE.INTERNAL", "metadata.google.internal.", "metadata", "metadata.goog", "instance-data",
	"4294967295", "0xe0000001", "1684301000",
}

func TestNoRulePermitsForbiddenAddresses(t *testing.T) {
	require.GreaterOrEqual(t, len(spellings)+len(names), 60)
	for name, p := range map[string]*Policy{
		"default": {}, "everything allowed": {Allow: rules(t, "0.0.0.0/0", "::/0", "*.internal", "metadata")},
	} {
		for _, host := range spellings {
			require.ErrorIs(t, p.Check(netip.MustParseAddrPort(host+":80")), ErrForbidden, "%s %s", name, host)
			_, err := p.Dialer(time.Second).DialContext(t.Context(), "tcp", host+":80")
			require.ErrorIs(t, err, ErrForbidden, "%s %s", name, host)
		}
		for _, host := range names {
			require.ErrorIs(t, p.CheckName(t.Context(), host, 80), ErrForbidden, "%s %s", name, host)
		}
	}
}

func TestOrdinaryAddressesArePermitted(t *testing.T) {
	p := &Policy{OwnPorts: []uint16{8080}}
	for _, text := range []string{
		"127.0.0.1:9080", "[::1]:9080", "192.168.1.1:8080", "10.1.2.3:80", "8.8.8.8:443", "[2001:db8::1]:1", "[64:ff9b::808:808]:80", "[fd12::1]:80", "172.17.0.1:9080",
	} {
		require.NoError(t, p.Check(netip.MustParseAddrPort(text)), text)
	}
}

func TestOwnPortsAreRefusedOnThisMachine(t *testing.T) {
	p := &Policy{OwnPorts: []uint16{8080, 9070, 5122}, Allow: rules(t, "0.0.0.0/0", "::/0")}
	own := []string{"127.0.0.1", "127.8.8.8", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"}
	prefixes, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, prefix := range prefixes {
		if ip := prefix.(*net.IPNet).IP.To4(); ip != nil {
			own = append(own, ip.String())
		}
	}
	for _, host := range own {
		for _, port := range p.OwnPorts {
			require.ErrorIs(t, p.Check(netip.MustParseAddrPort(host+":"+strconv.Itoa(int(port)))), ErrForbidden, "%s %d", host, port)
		}
		require.NoError(t, p.Check(netip.MustParseAddrPort(host+":9080")), host)
	}
}

func TestRules(t *testing.T) {
	p := &Policy{
		Allow: rules(t, "10.0.0.0/8", "::ffff:192.168.7.0/120", "2001:db8::7", "*.svc.example", "one.example"),
		Deny:  rules(t, "10.6.0.0/16", "bad.svc.example", "127.0.0.0/8"),
	}
	for text, want := range map[string]bool{
		"10.1.2.3": true, "10.6.1.1": false, "[::ffff:10.6.1.1]": false, "192.168.7.9": true, "192.168.8.9": false, "8.8.8.8": false, "[2001:db8::7]": true, "[2001:db8::8]": false,
		"[2002:a06:101::]": false, "[64:ff9b::a06:101]": false, "127.0.0.1": false,
	} {
		err := p.Check(netip.MustParseAddrPort(text + ":80"))
		require.Equal(t, want, err == nil, "%s: %v", text, err)
	}
	for host, want := range map[string]bool{"a.svc.example": true, "A.B.svc.Example.": true, "bad.svc.example": false, "BAD.svc.example.": false, "one.example": true} {
		named, err := p.checkHost(host)
		require.Equal(t, want, named && err == nil, host)
	}
	for _, bad := range []string{"", "*", "*.", "http://a", "a/b", "10.0.0.0/33", "1.2.3", "a.*.b"} {
		_, err := ParseRules([]string{bad})
		require.Error(t, err, bad)
	}
}

func TestFunctionsAndRoles(t *testing.T) {
	p := &Policy{Functions: []string{"arn:aws:lambda:eu-*:123456789012:function:app-*:*"}, Roles: []string{"arn:aws:iam::123456789012:role/invoke"}}
	const good = "arn:aws:lambda:eu-west-1:123456789012:function:app-x:1"
	require.NoError(t, p.CheckFunction(good, ""))
	require.NoError(t, p.CheckFunction(good, "arn:aws:iam::123456789012:role/invoke"))
	require.ErrorIs(t, p.CheckFunction(good, "arn:aws:iam::123456789012:role/admin"), ErrForbidden)
	require.ErrorIs(t, p.CheckFunction("arn:aws:lambda:eu-west-1:999999999999:function:app-x:1", ""), ErrForbidden)
	require.NoError(t, (&Policy{}).CheckFunction("any", "any"))
}

// A name that resolves to a permitted address first and to another one later is refused
// when it is connected to: there is no other resolution in between.
func TestRebinding(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	resolver, answers := rebinding(t, "127.0.0.1", "169.254.169.254")
	p := &Policy{Resolver: resolver}
	dialer := p.Dialer(5 * time.Second)
	conn, err := dialer.DialContext(t.Context(), "tcp", "rebind.test:"+port)
	require.NoError(t, err)
	conn.Close()
	for range 5 {
		_, err = dialer.DialContext(t.Context(), "tcp", "rebind.test:"+port)
		require.ErrorIs(t, err, ErrForbidden)
	}
	require.ErrorIs(t, p.CheckName(t.Context(), "rebind.test", 80), ErrForbidden)
	require.Positive(t, answers.Load())
	// Nor does an allowed name permit addresses that no rule can permit.
	p.Allow = rules(t, "rebind.test")
	_, err = p.Dialer(time.Second).DialContext(t.Context(), "tcp", "rebind.test:80")
	require.ErrorIs(t, err, ErrForbidden)
}

// rebinding returns a resolver that resolves the first query for an IPv4 address to one address and
// all later ones to another.
func rebinding(t *testing.T, first, then string) (*net.Resolver, *atomic.Int32) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	answers := new(atomic.Int32)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			var query dnsmessage.Message
			if query.Unpack(buf[:n]) != nil || len(query.Questions) == 0 {
				continue
			}
			reply := dnsmessage.Message{Header: dnsmessage.Header{ID: query.ID, Response: true}, Questions: query.Questions}
			if q := query.Questions[0]; q.Type == dnsmessage.TypeA {
				text := then
				if answers.Add(1) == 1 {
					text = first
				}
				reply.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(text).As4()},
				}}
			}
			if packed, err := reply.Pack(); err == nil {
				_, _ = server.WriteTo(packed, from)
			}
		}
	}()
	t.Cleanup(func() { server.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.LocalAddr().String())
	}}, answers
}

func TestParseAddr(t *testing.T) {
	for text, want := range map[string]uint32{"1": 1, "0x7f.1": 0x7f000001, "0177.0.0.1": 0x7f000001, "2130706433": 0x7f000001, "127.1": 0x7f000001, "1.2.3": 0x01020003} {
		addr, ok := parseAddr(text)
		require.True(t, ok, text)
		b := addr.As4()
		require.Equal(t, want, binary.BigEndian.Uint32(b[:]), text)
	}
	for _, text := range []string{"", "a", "1.2.3.4.5", "256.1.1.1", "4294967296", "0x", "1_0", "+1", "0b1", "08", "1.a"} {
		_, ok := parseAddr(text)
		require.False(t, ok, text)
	}
	require.True(t, matches("a*c*e", "abcde") && !matches("a*c*e", "abde") && matches("*", "") && matches("x", "x"))
	require.Equal(t, "a.b", normalizeHost(strings.ToUpper("a.b.")))
}
