package enroll

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"platform/internal/certs"
	clusters "platform/internal/cluster"
	"platform/internal/feature"
	nodepb "platform/proto/node"
)

// identity is what a node sends to others, beside its certificate.
type identity struct {
	Cluster     string `json:"cluster_name"`
	Incarnation string `json:"incarnation"`
	id          string // of the cluster
}

// methods are all methods that nodes serve to others.
func methods() (all []protoreflect.MethodDescriptor) {
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			for j := range file.Services().Get(i).Methods().Len() {
				if file.Package() == nodepb.File_proto_node_cluster_proto.Package() {
					all = append(all, file.Services().Get(i).Methods().Get(j))
				}
			}
		}
		return true
	})
	return all
}

// fill sets the fields by which a message names its sender and its receiver.
func fill(m protoreflect.Message, id *identity, node, target string) {
	values := map[protoreflect.Name]string{
		"cluster_id": id.id, "cluster_name": id.Cluster, "name": node, "node_id": node, "incarnation": id.Incarnation, "address": "127.0.0.1:9",
		"target": target, "replica": target, "from": target,
	}
	if strings.HasPrefix(string(m.Descriptor().Name()), "Raft") || m.Descriptor().Name() == "SnapshotChunk" {
		copied := *id
		copied.id = id.Cluster // the streams of Raft carry the name of the cluster
		id = &copied
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.Name() == "hello":
			fill(m.Mutable(f).Message(), id, node, target)
		case f.Cardinality() == protoreflect.Repeated || f.ContainingOneof() != nil:
		case f.Kind() == protoreflect.StringKind && values[f.Name()] != "":
			m.Set(f, protoreflect.ValueOfString(values[f.Name()]))
		}
	}
}

// attempt sends the first message of a method, and returns the response.
func attempt(ctx context.Context, conn *grpc.ClientConn, method protoreflect.MethodDescriptor, id *identity, node, target string) (proto.Message, error) {
	request, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		return nil, err
	}
	response, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, name)
	if err != nil {
		return nil, err
	}
	message, answer := request.New(), response.New()
	fill(message, id, node, target)
	_ = stream.SendMsg(message.Interface()) // the error is that of RecvMsg
	if !method.IsStreamingClient() {
		_ = stream.CloseSend()
	}
	return answer.Interface(), stream.RecvMsg(answer.Interface())
}

// dialNode connects to a node with a certificate.
func (c *cluster) dialNode(node int, pair tls.Certificate) *grpc.ClientConn {
	address := c.nodes[node].NodeAddress()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}}
		return dialer.DialContext(ctx, "tcp", address)
	}))
	require.NoError(c, err)
	c.Cleanup(func() { conn.Close() })
	return conn
}

// identityOf returns what a node calls itself.
func (c *cluster) identityOf(node int) *identity {
	raw, err := os.ReadFile(c.in(node, "IDENTITY"))
	require.NoError(c, err)
	id := new(identity)
	require.NoError(c, json.Unmarshal(raw, id))
	return id
}

// removed removes n4, whose certificate remains valid, and requires that the other nodes serve
// nothing to it: neither with its own certificate, nor on a connection from before.
func (c *cluster) removed(authority *certs.Authority) {
	c.await("n4 is no member", func() bool {
		return len(c.names()) == 4 && c.nodes[3].Healthy(c.Context()) == nil
	})
	_, pair := issue(c.T, authority, "n4", time.Hour)
	id := c.identityOf(3)
	target := "n1/" + c.identityOf(0).Incarnation
	open := c.dialNode(0, pair)
	ask := func(conn *grpc.ClientConn, method protoreflect.MethodDescriptor) (proto.Message, error) {
		ctx, cancel := context.WithTimeout(c.Context(), 20*time.Second)
		defer cancel()
		return attempt(ctx, conn, method, id, "n4", target)
	}
	// While it is a member, others respond.
	joined, err := nodepb.NewNodeClusterClient(open).Join(c.Context(), &nodepb.JoinRequest{
		ClusterName: id.Cluster, Protocol: clusters.Protocol, Name: "n4", Incarnation: id.Incarnation, FabricAddress: "http://" + c.nodes[3].NodeAddress() + "/", FeatureLevel: uint32(feature.Supported()),
	})
	require.NoError(c, err)
	require.NotEmpty(c, joined.ClusterId, joined.Refusal)
	id.id = joined.ClusterId
	served := 0
	for _, method := range methods() {
		if name := method.Name(); name == "Status" || name == "Stats" || name == "LogLevels" || name == "Subscriptions" || name == "DeadLetters" || name == "Standing" {
			_, err := ask(open, method)
			require.NoError(c, err, name)
			served++
		}
	}
	require.Equal(c, 6, served)

	code, body := c.admin(0, http.MethodPatch, "/cluster/nodes/n4/drain", "")
	require.Equal(c, http.StatusOK, code, body)
	c.await("n4 is not removed", func() bool {
		code, body = c.admin(0, http.MethodDelete, "/cluster/nodes/n4", "")
		return code == http.StatusOK
	})
	select {
	case <-c.nodes[3].Process.Exited():
	case <-time.After(waitLimit):
		require.Fail(c, "the removed node does not exit")
	}
	require.ErrorContains(c, c.nodes[3].Process.Err(), "exit status 4")

	all := methods()
	require.Greater(c, len(all), 15)
	refused := func(what string, conn func() *grpc.ClientConn) {
		c.Run(what, func(t *testing.T) {
			for _, method := range all {
				answer, err := ask(conn(), method)
				if method.Name() == "Standing" { // by which it learns that it was removed
					require.NoError(t, err)
					require.NotEmpty(t, stringIn(answer, "removed"))
					require.NotContains(t, fmt.Sprint(answer), id.id)
					continue
				}
				if method.Name() == "Ballot" || method.Name() == "Join" {
					// Nodes that are no members yet use these: they get a reason, and no ID of the cluster.
					require.NoError(t, err)
					require.NotEmpty(t, stringIn(answer, "refusal"), method.FullName())
					require.NotContains(t, fmt.Sprint(answer), id.id)
					continue
				}
				require.Error(t, err, "%s: %v", method.FullName(), answer)
				require.Contains(t, []codes.Code{codes.PermissionDenied, codes.Unavailable}, status.Code(err), "%s: %v", method.FullName(), err)
				require.NotContains(t, err.Error(), id.id)
				require.NotContains(t, err.Error(), clusterName)
			}
		})
	}
	refused("a new connection", func() *grpc.ClientConn { return c.dialNode(0, pair) })
	refused("a connection from before", func() *grpc.ClientConn { return open })
	c.ungossiped(3, "n4", id.Incarnation)
	_, other := issue(c.T, authority, "n2", time.Hour)
	answer, err := attempt(c.Context(), c.dialNode(0, other), methodNamed("Status"), &identity{Cluster: id.Cluster, id: id.id}, "n2", target)
	require.NoError(c, err, "a member is served: %v", answer)
	require.Equal(c, []string{"n1", "n2", "n3"}, c.names())
}

// stringIn returns the value of a field.
func stringIn(m proto.Message, field protoreflect.Name) string {
	return m.ProtoReflect().Get(m.ProtoReflect().Descriptor().Fields().ByName(field)).String()
}

func methodNamed(name protoreflect.Name) protoreflect.MethodDescriptor {
	for _, method := range methods() {
		if method.Name() == name {
			return method
		}
	}
	return nil
}
