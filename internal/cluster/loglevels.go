package cluster

import (
	"context"
	"fmt"
	"time"

	"platform/internal/telemetry"
	"platform/metadata"
	nodepb "platform/proto/node"
)

// logLevelsTimeout bounds a request for the log levels of a node.
const logLevelsTimeout = 3 * time.Second

// LogLevelsChange is a change of log levels.
type LogLevelsChange struct {
	Filter string        // see telemetry.ParseFilter; empty: the configured one
	For    time.Duration // 0: until the node restarts
}

// NodeLogLevels are the log levels of one node, or the reason why they are not known or were
// not changed.
type NodeLogLevels struct {
	Node  metadata.Node
	State telemetry.LevelState
	Err   error
}

// LogLevels returns the log levels of this node, after changing them if requested.
func (s *Server) LogLevels(_ context.Context, req *nodepb.LogLevelsRequest) (*nodepb.LogLevelsResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.LogLevelsResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	if c := req.Change; c != nil {
		if err := s.setLogLevels(LogLevelsChange{Filter: c.Filter, For: time.Duration(c.Milliseconds) * time.Millisecond}); err != nil {
			return &nodepb.LogLevelsResponse{Error: err.Error()}, nil //nolint:nilerr // as above
		}
	}
	state := s.cfg.LogLevels.State()
	resp := &nodepb.LogLevelsResponse{Filter: state.Filter, Configured: state.Configured, Components: state.Components}
	if !state.Until.IsZero() {
		resp.Until = state.Until.UnixMilli()
	}
	return resp, nil
}

func (s *Server) setLogLevels(c LogLevelsChange) error {
	if c.For < 0 || c.For > telemetry.MaxLevelOverride {
		return fmt.Errorf("the levels cannot be changed for %s", c.For)
	}
	if err := s.cfg.LogLevels.Set(c.Filter, c.For); err != nil {
		return err
	}
	s.log.Warn("log levels were changed", "filter", s.cfg.LogLevels.State().Filter, "for", c.For.String())
	return nil
}

// LogLevels requests the log levels of nodes, in their order, after changing them unless change
// is nil.
func (n *Nodes) LogLevels(ctx context.Context, nodes []metadata.Node, change *LogLevelsChange) []NodeLogLevels {
	ctx, cancel := context.WithTimeout(ctx, logLevelsTimeout)
	defer cancel()
	return fromEach(nodes, func(node metadata.Node) NodeLogLevels {
		state, err := n.logLevelsOf(ctx, node, change)
		return NodeLogLevels{Node: node, State: state, Err: err}
	})
}

func (n *Nodes) logLevelsOf(ctx context.Context, node metadata.Node, change *LogLevelsChange) (state telemetry.LevelState, err error) {
	req := &nodepb.LogLevelsRequest{ClusterId: n.server.ClusterID()}
	if change != nil {
		req.Change = &nodepb.LogLevelsChange{Filter: change.Filter, Milliseconds: change.For.Milliseconds()}
	}
	resp, err := sendOrServe(ctx, n, node, nodepb.NodeClusterClient.LogLevels, n.server.LogLevels, req)
	if err := responseError(resp, err); err != nil {
		return state, err
	}
	state = telemetry.LevelState{Filter: resp.Filter, Configured: resp.Configured, Components: resp.Components}
	if resp.Until > 0 {
		state.Until = time.UnixMilli(resp.Until)
	}
	return state, nil
}
