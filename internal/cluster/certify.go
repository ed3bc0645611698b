package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc/peer"

	"platform/internal/cluster/membership"
	"platform/internal/nodetls"
	nodepb "platform/proto/node"
)

// Renew issues the next certificate of a member.
type Renew func(ctx context.Context, from net.Addr, node string, signingRequest []byte) (certificate []byte, err error)

// Certify renews the certificate of the authenticated node that sends the request.
func (s *Server) Certify(ctx context.Context, req *nodepb.CertifyRequest) (*nodepb.CertifyResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.CertifyResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	if err := s.mayCertify(ctx, req.Name); err != nil {
		return nil, err
	}
	var from net.Addr
	if p, ok := peer.FromContext(ctx); ok {
		from = p.Addr
	}
	return s.certify(ctx, from, req), nil
}

// mayCertify returns an error unless the client is the node that the certificate is for.
func (s *Server) mayCertify(ctx context.Context, name string) error {
	node := nodetls.Peer(ctx)
	if node != "" && node == name {
		return nil
	}
	if skipped, due := s.refusals.Admit(node, time.Now()); due {
		s.log.Warn("renewal of a certificate refused", "node", fmt.Sprintf("%.64s", name), "authenticated_as", node, "repeated", skipped)
	}
	return errRefused
}

func (s *Server) certify(ctx context.Context, from net.Addr, req *nodepb.CertifyRequest) *nodepb.CertifyResponse {
	certificate, err := s.cfg.Renew(ctx, from, req.Name, req.SigningRequest)
	if err != nil {
		return &nodepb.CertifyResponse{Error: err.Error()}
	}
	s.log.Info("certificate of a node renewed", "node", req.Name)
	return &nodepb.CertifyResponse{Certificate: certificate}
}

// Certify requests the next certificate of this node: from itself, if it can issue one, and then from
// the other nodes that are alive, one after another.
func (n *Nodes) Certify(ctx context.Context, signingRequest []byte) ([]byte, error) {
	req := &nodepb.CertifyRequest{ClusterId: n.server.ClusterID(), Name: n.server.self.Node, SigningRequest: signingRequest}
	resp := n.server.certify(ctx, nil, req)
	if resp.Error == "" {
		return resp.Certificate, nil
	}
	errs := []error{errors.New(resp.Error)}
	for _, m := range n.server.cfg.Members().Nodes() {
		if m.Self || m.State != membership.Alive {
			continue
		}
		certificate, err := n.requestCertificate(ctx, m.Address, req)
		if err == nil {
			return certificate, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", m.Name, err))
	}
	return nil, errors.Join(errs...)
}

func (n *Nodes) requestCertificate(ctx context.Context, address string, req *nodepb.CertifyRequest) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, ballotTimeout)
	defer cancel()
	node, err := n.peers.At(address)
	if err != nil {
		return nil, err
	}
	resp, err := node.Certify(ctx, req)
	if err := responseError(resp, err); err != nil {
		return nil, err
	}
	return resp.Certificate, nil
}
