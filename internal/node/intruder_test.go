package node

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"platform/internal/certs"
	"platform/internal/cluster"
	"platform/internal/config"
	"platform/internal/feature"
	"platform/internal/nodelink"
	nodepb "platform/proto/node"
)

// intruder makes requests at the node port of n1.
type intruder struct {
	t       *testing.T
	connect func() (closing func())
	conn    *grpc.ClientConn // made by connect
	hello   *nodepb.Hello
	raft    *nodepb.Hello // with the name of the cluster instead of its ID
	cluster string        // ID
	target  string        // replica of n1 in all groups
}

// newIntruder connects with a certificate, or without TLS if it is nil, and calls itself by a
// name and an incarnation.
func newIntruder(t *testing.T, c *testCluster, pair *tls.Certificate, useTLS bool, clusterID, name, incarnation string) *intruder {
	address := fmt.Sprintf("127.0.0.1:%d", c.nodes[0].cfg.BindPort)
	dial := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", address)
		if err != nil || !useTLS {
			return conn, err
		}
		cfg := &tls.Config{InsecureSkipVerify: true}
		if pair != nil {
			cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil } // whatever the server accepts
		}
		secure := tls.Client(conn, cfg)
		return secure, secure.HandshakeContext(ctx)
	})
	in := &intruder{
		t: t, cluster: clusterID, target: "n1/" + incarnationOf(t, c, 0),
		hello: &nodepb.Hello{ClusterId: clusterID, NodeId: name, Incarnation: incarnation, Address: "127.0.0.1:9"},
	}
	in.raft = proto.Clone(in.hello).(*nodepb.Hello)
	in.raft.ClusterId = "localcluster"
	in.connect = func() func() {
		conn, err := nodelink.Dial(address, nil, grpc.WithTransportCredentials(insecure.NewCredentials()), dial)
		require.NoError(in.t, err)
		in.conn = conn
		return func() { conn.Close() }
	}
	return in
}

func incarnationOf(t *testing.T, c *testCluster, i int) string {
	raw, err := os.ReadFile(filepath.Join(c.nodes[i].cfg.BaseDir, c.nodes[i].cfg.NodeName, "IDENTITY"))
	require.NoError(t, err)
	var id struct{ Incarnation string }
	require.NoError(t, json.Unmarshal(raw, &id))
	return id.Incarnation
}

// attempts are one request of each kind. Each returns the response, or the error if it was refused.
func (in *intruder) attempts() map[string]func(context.Context) (answered string, err error) {
	garbage := []byte("garbage that no replica can apply")
	header := &nodepb.Header{ProtocolVersion: 3, Id: []byte(in.hello.NodeId + "/" + in.hello.Incarnation), Address: []byte(in.hello.Address)}
	const term = 1 << 40 // deposes every leader
	frames := map[string]*nodepb.RaftFrame{
		"append":  {AppendRequest: &nodepb.AppendEntriesRequest{Header: header, Term: term, LeaderCommit: 1 << 40, Entries: []*nodepb.LogEntry{{Index: 1 << 30, Term: term, Data: garbage}}}},
		"vote":    {VoteRequest: &nodepb.VoteRequest{Header: header, Term: term, LastLogIndex: 1 << 40, LastLogTerm: term, LeadershipTransfer: true}},
		"prevote": {PreVoteRequest: &nodepb.VoteRequest{Header: header, Term: term, LastLogIndex: 1 << 40, LastLogTerm: term}},
		"timeout": {TimeoutNowRequest: &nodepb.TimeoutNowRequest{Header: header}},
		"silence": {SilenceRequest: &nodepb.SilenceRequest{Term: 1}},
		"confirm": {Confirm: true, AppendRequest: &nodepb.AppendEntriesRequest{Header: header, Term: 1}},
	}
	all := map[string]func(context.Context) (string, error){}
	for name, frame := range frames {
		for group := range uint32(3) {
			all[fmt.Sprint("raft ", name, " ", group)] = func(ctx context.Context) (string, error) {
				stream, err := nodepb.NewRaftTransportClient(in.conn).Exchange(ctx)
				if err != nil {
					return "", err
				}
				if err := stream.Send(&nodepb.RaftFrame{Hello: in.raft}); err != nil {
					return "", err
				}
				frame := proto.Clone(frame).(*nodepb.RaftFrame)
				frame.GroupId, frame.Sequence, frame.Target, frame.TimeoutMs = group, 1, in.target, 5000
				_ = stream.Send(frame)
				for {
					f, err := stream.Recv()
					if err != nil || f.Error != "" {
						return "", fmt.Errorf("%w %s", err, f.GetError())
					}
					if f.Hello == nil {
						return f.String(), nil
					}
				}
			}
		}
	}
	all["snapshot"] = func(ctx context.Context) (string, error) {
		stream, err := nodepb.NewRaftTransportClient(in.conn).InstallSnapshot(ctx)
		if err != nil {
			return "", err
		}
		_ = stream.Send(&nodepb.SnapshotChunk{Hello: in.raft, Data: garbage, Request: &nodepb.InstallSnapshotRequest{GroupId: 1, Header: header, Term: term, LastLogIndex: 1 << 40, LastLogTerm: term, Target: in.target}})
		resp, err := stream.CloseAndRecv()
		return resp.String(), err
	}
	for method := range nodepb.PartitionMethod_name {
		all[fmt.Sprint("partition ", nodepb.PartitionMethod(method))] = func(ctx context.Context) (string, error) {
			stream, err := nodepb.NewNodePartitionsClient(in.conn).Exchange(ctx)
			if err != nil {
				return "", err
			}
			_ = stream.Send(&nodepb.PartitionBatch{Hello: in.hello})
			_ = stream.Send(&nodepb.PartitionBatch{Frames: []*nodepb.PartitionFrame{{Sequence: 1, Request: &nodepb.PartitionRequest{Method: nodepb.PartitionMethod(method), Command: garbage}}}})
			for {
				batch, err := stream.Recv()
				if err != nil {
					return "", err
				}
				if len(batch.Frames) > 0 {
					return batch.String(), nil
				}
			}
		}
	}
	all["records"] = func(ctx context.Context) (string, error) {
		stream, err := nodepb.NewNodePartitionsClient(in.conn).Records(ctx, &nodepb.RecordsRequest{Hello: in.hello})
		if err != nil {
			return "", err
		}
		page, err := stream.Recv()
		return page.String(), err
	}
	for method, req := range map[string]any{
		"Ballot":   &nodepb.BallotRequest{ClusterName: "localcluster", Name: "n2", Incarnation: "x"},
		"Join":     &nodepb.JoinRequest{ClusterName: "localcluster", Protocol: cluster.Protocol, Name: "n4", Incarnation: "01M7YV7GGAXQP43WPQP5DZPY0H", FabricAddress: "http://127.0.0.1:9", FeatureLevel: uint32(feature.Supported())},
		"Propose":  &nodepb.ProposeRequest{ClusterId: in.cluster, Entry: garbage},
		"Status":   &nodepb.StatusRequest{ClusterId: in.cluster, Details: true},
		"Transfer": &nodepb.TransferRequest{ClusterId: in.cluster, To: "n1"},
		"Follow":   &nodepb.FollowRequest{ClusterId: in.cluster},
		"Digest":   &nodepb.DigestRequest{ClusterId: in.cluster, Replica: in.target},
		"Standing": &nodepb.StandingRequest{ClusterId: in.cluster, Name: "n1", Incarnation: "x"},
		"Recover":  &nodepb.RecoverRequest{ClusterId: in.cluster, Replica: in.target, From: in.target},
		"Certify":  &nodepb.CertifyRequest{ClusterId: in.cluster, Name: in.hello.NodeId, SigningRequest: signingRequest(in.t, in.hello.NodeId)},
		"Stats":    &nodepb.StatsRequest{ClusterId: in.cluster, Step: 10_000, To: 10_000},

		"Subscriptions": &nodepb.SubscriptionsRequest{ClusterId: in.cluster},
		"StreamRecord":  &nodepb.StreamRecordRequest{ClusterId: in.cluster},
		"DeadLetters":   &nodepb.DeadLettersRequest{ClusterId: in.cluster},
		"LogLevels":     &nodepb.LogLevelsRequest{ClusterId: in.cluster},
		"Events":        &nodepb.EventsRequest{ClusterId: in.cluster},
	} {
		all["cluster "+method] = func(ctx context.Context) (string, error) {
			resp := map[string]any{
				"Ballot": new(nodepb.BallotResponse), "Join": new(nodepb.JoinResponse), "Propose": new(nodepb.ProposeResponse), "Status": new(nodepb.StatusResponse), "Transfer": new(nodepb.TransferResponse),
				"Follow": new(nodepb.FollowResponse), "Digest": new(nodepb.DigestResponse), "Standing": new(nodepb.StandingResponse), "Recover": new(nodepb.RecoverResponse), "Stats": new(nodepb.StatsResponse),
				"Certify": new(nodepb.CertifyResponse), "Subscriptions": new(nodepb.SubscriptionsResponse), "StreamRecord": new(nodepb.StreamRecordResponse),
				"DeadLetters": new(nodepb.DeadLettersResponse), "LogLevels": new(nodepb.LogLevelsResponse), "Events": new(nodepb.EventsResponse),
			}[method]
			err := in.conn.Invoke(ctx, "/"+nodepb.NodeCluster_ServiceDesc.ServiceName+"/"+method, req, resp)
			return fmt.Sprint(resp), err
		}
	}
	for _, method := range nodepb.NodeCluster_ServiceDesc.Methods {
		require.Contains(in.t, all, "cluster "+method.MethodName, "there is no attempt")
	}
	return all
}

// refusedEverywhere makes all requests and requires that each is refused and that refusals disclose
// no names.
func (in *intruder) refusedEverywhere() (refused int) {
	for name, attempt := range in.attempts() {
		ctx, cancel := context.WithTimeout(in.t.Context(), 30*time.Second)
		closing := in.connect() // a new connection, so that it does not fail because the previous one did
		answer, err := attempt(ctx)
		closing()
		require.NoError(in.t, ctx.Err(), "%s: no refusal", name)
		cancel()
		require.Error(in.t, err, "%s was answered: %s", name, answer)
		require.NotContains(in.t, err.Error(), in.cluster, name)
		require.NotContains(in.t, err.Error(), in.target, name)
		require.NotContains(in.t, err.Error(), "localcluster", name)
		refused++
	}
	return refused
}

// The node port responds only to clients that present the certificate of a member and use the
// name in it. Requests of others have no effect.
func TestTheNodePortServesMembersOnly(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	c := newTestClusterWith(t, 3, func(cfg *config.Config) {
		cfg.Security.NodeTLS = nodeFiles(t, ca, dir, cfg.NodeName)
		cfg.Security.NodeTLS.Mode = config.TLSRequire
	})
	c.healthy(3, 0, 1, 2)
	c.counter(0)
	c.replicated(0, 1, 2)
	sum := c.addAll(0, 0)
	clusterID := clusterIDOf(t, c, ca)
	own := func(i int) string { return incarnationOf(t, c, i) }

	// n3 is removed and its certificate used further.
	code, body := c.do(0, true, "PATCH", "/cluster/nodes/n3/drain?force=true", "")
	require.Equal(t, http.StatusOK, code, body)
	removed := own(2)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(c.seen(0), func(n nodeSeen) bool { return n.Name == "n3" && n.Replicas == 0 })
	}, waitTimeout, 50*time.Millisecond)
	c.stop(2)
	code, body = c.do(0, true, "DELETE", "/cluster/nodes/n3", "")
	require.Equal(t, http.StatusOK, code, body)
	c.healthy(2, 0, 1)

	otherCA := newAuthority(t)
	otherCluster, err := certs.NewAuthority("othercluster", time.Hour)
	require.NoError(t, err)
	expiredCert, expiredKey, err := ca.IssueNode("n2", -time.Minute)
	require.NoError(t, err)
	expired, err := tls.X509KeyPair(expiredCert, expiredKey)
	require.NoError(t, err)
	authority := tls.Certificate{Certificate: [][]byte{ca.Cert.Raw}, PrivateKey: authorityKey(t, ca)}
	pair := func(a *certs.Authority, node string) *tls.Certificate { p := issued(t, a, node); return &p }
	before := members(t, c)
	refused := 0
	for name, in := range map[string]*intruder{
		"no TLS":                                newIntruder(t, c, nil, false, clusterID, "n2", own(1)),
		"no certificate":                        newIntruder(t, c, nil, true, clusterID, "n2", own(1)),
		"other authority":                       newIntruder(t, c, pair(otherCA, "n2"), true, clusterID, "n2", own(1)),
		"other cluster":                         newIntruder(t, c, pair(otherCluster, "n2"), true, clusterID, "n2", own(1)),
		"expired":                               newIntruder(t, c, &expired, true, clusterID, "n2", own(1)),
		"certificate of the authority":          newIntruder(t, c, &authority, true, clusterID, "n2", own(1)),
		"other node's certificate":              newIntruder(t, c, pair(ca, "n9"), true, clusterID, "n2", own(1)),
		"node that is no member":                newIntruder(t, c, pair(ca, "n9"), true, clusterID, "n9", own(1)),
		"removed member":                        newIntruder(t, c, pair(ca, "n3"), true, clusterID, "n3", removed),
		"removed member in the name of another": newIntruder(t, c, pair(ca, "n3"), true, clusterID, "n2", own(1)),
	} {
		t.Run(name, func(t *testing.T) { in.t = t; refused += in.refusedEverywhere() })
	}
	t.Logf("%d requests refused", refused)
	for _, path := range []string{"/metrics", "/debug/pprof/", "/health/x"} { // HTTP without TLS
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", c.nodes[0].cfg.BindPort, path))
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, http.StatusForbidden, resp.StatusCode, path)
	}

	for name, status := range map[string]int{"n2": http.StatusOK, "n3": http.StatusForbidden, "n9": http.StatusForbidden} { // n3 was removed
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*pair(ca, name)}}}}
		resp, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/metrics", c.nodes[0].cfg.BindPort))
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, status, resp.StatusCode, name)
		client.CloseIdleConnections()
	}

	require.Equal(t, before, members(t, c))
	c.healthy(2, 0, 1)
	code, body = c.do(0, false, "POST", "/platform/call/Counter/k0/add", "0")
	require.Equal(t, http.StatusOK, code, body)
	require.Equal(t, fmt.Sprint(sum), body)
	for i := range 2 {
		c.stop(i)
	}
	for i := range 2 {
		c.start(i)
	}
	c.healthy(2, 0, 1)
	code, body = c.do(1, false, "POST", "/platform/call/Counter/k0/add", "0")
	require.Equal(t, http.StatusOK, code, body)
	require.Equal(t, fmt.Sprint(sum), body)
}

// A gossip key instead of a packet key encrypts packets only: the node port still requires a certificate.
func TestAGossipKeyDoesNotReplaceCertificates(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	key := filepath.Join(dir, "cluster.key")
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600))
	c := newTestClusterWith(t, 2, func(cfg *config.Config) {
		cfg.Security.NodeTLS = nodeFiles(t, ca, dir, cfg.NodeName)
		cfg.Security.NodeTLS.Mode, cfg.Security.NodeTLS.PacketKeyFile = config.TLSRequire, ""
		cfg.Networking.GossipKeyFile = key
	})
	c.healthy(2, 0, 1)
	clusterID, before := clusterIDOf(t, c, ca), members(t, c)
	other := issued(t, newAuthority(t), "n2")
	for name, in := range map[string]*intruder{
		"no TLS":          newIntruder(t, c, nil, false, clusterID, "n2", incarnationOf(t, c, 1)),
		"no certificate":  newIntruder(t, c, nil, true, clusterID, "n2", incarnationOf(t, c, 1)),
		"other authority": newIntruder(t, c, &other, true, clusterID, "n2", incarnationOf(t, c, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			in.t = t
			require.NotZero(t, in.refusedEverywhere())
		})
	}
	require.Equal(t, before, members(t, c))
	c.healthy(2, 0, 1)
}

// members returns the names of the nodes. It requires that no term is one of a forger.
func members(t *testing.T, c *testCluster) (names []string) {
	for _, n := range c.seen(0) {
		names = append(names, n.Name)
	}
	code, body := c.do(0, true, "GET", "/cluster/partitions", "")
	require.Equal(t, http.StatusOK, code, body)
	var answer struct{ Partitions []struct{ Term uint64 } }
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	for _, p := range answer.Partitions {
		require.Less(t, p.Term, uint64(1<<20))
	}
	return names
}

// clusterIDOf requests the ID as a member: an intruder may know it.
func clusterIDOf(t *testing.T, c *testCluster, ca *certs.Authority) string {
	var pair *tls.Certificate
	if ca != nil {
		issued := issued(t, ca, "n2")
		pair = &issued
	}
	n2 := newIntruder(t, c, pair, ca != nil, "", "n2", incarnationOf(t, c, 1))
	defer n2.connect()()
	resp, err := nodepb.NewNodeClusterClient(n2.conn).Join(t.Context(), &nodepb.JoinRequest{
		ClusterName: "localcluster", Protocol: cluster.Protocol, Name: "n2", Incarnation: n2.hello.Incarnation,
		FabricAddress: fmt.Sprintf("http://127.0.0.1:%d/", c.nodes[1].cfg.BindPort), FeatureLevel: uint32(feature.Supported()),
	})
	require.NoError(t, err)
	require.NotEmpty(t, strings.TrimSpace(resp.ClusterId), resp.Refusal)
	return resp.ClusterId
}

// signingRequest returns a valid request for the certificate of a node.
func signingRequest(t *testing.T, node string) []byte {
	key, err := certs.NewKey()
	require.NoError(t, err)
	request, err := certs.NewSigningRequest(key, "localcluster", node)
	require.NoError(t, err)
	return request
}

func authorityKey(t *testing.T, ca *certs.Authority) crypto.PrivateKey {
	text, err := ca.KeyPEM()
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	require.NoError(t, err)
	return key
}
