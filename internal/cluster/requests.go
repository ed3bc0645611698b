package cluster

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"

	"platform/metadata"
	nodepb "platform/proto/node"
)

// method is a request of nodepb.NodeClusterClient.
type method[Req, Resp any] func(nodepb.NodeClusterClient, context.Context, Req, ...grpc.CallOption) (Resp, error)

// send sends a request to another node.
func send[Req, Resp any](ctx context.Context, n *Nodes, to metadata.Node, m method[Req, Resp], req Req) (resp Resp, err error) {
	peer, err := n.of(to)
	if err != nil {
		return resp, err
	}
	return m(peer, ctx, req)
}

// sendOrServe sends a request to a node. If that is this one, it is served without a connection.
func sendOrServe[Req, Resp any](ctx context.Context, n *Nodes, to metadata.Node, m method[Req, Resp], serve func(context.Context, Req) (Resp, error), req Req) (Resp, error) {
	if n.isSelf(to) {
		return serve(ctx, req)
	}
	return send(ctx, n, to, m, req)
}

// responseError returns the error of a request: that of the connection, or the one in the response.
func responseError(resp interface{ GetError() string }, err error) error {
	if err == nil && resp.GetError() != "" {
		return errors.New(resp.GetError())
	}
	return err
}

// fromEach calls request for each of the nodes concurrently and returns its results in their order.
func fromEach[T any](nodes []metadata.Node, request func(metadata.Node) T) []T {
	all := make([]T, len(nodes))
	var wg sync.WaitGroup
	for i, node := range nodes {
		wg.Go(func() { all[i] = request(node) })
	}
	wg.Wait()
	return all
}
