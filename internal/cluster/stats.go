package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"platform/internal/stats"
	"platform/metadata"
	nodepb "platform/proto/node"
)

// statsTimeout bounds a request for the statistics of a node.
const statsTimeout = 3 * time.Second

// Bounds of a request for statistics.
const (
	maxStatsSteps    = stats.Steps
	maxStatsServices = stats.MaxServices
)

// Stats returns the node's time series of invocations.
func (s *Server) Stats(_ context.Context, req *nodepb.StatsRequest) (*nodepb.StatsResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.StatsResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	if step := stats.Step.Milliseconds(); req.Step < step || req.Step%step != 0 || req.To < req.From || (req.To-req.From)/req.Step > maxStatsSteps || req.Services > maxStatsServices {
		return &nodepb.StatsResponse{Error: fmt.Sprintf("invalid range or step: %d ms from %d to %d", req.Step, req.From, req.To)}, nil
	}
	q := stats.Query{From: req.From, To: req.To, Step: req.Step, Services: int(req.Services), Service: req.Service}
	return statsToProto(s.cfg.Stats.Select(q)), nil
}

func statsToProto(r stats.Result) *nodepb.StatsResponse {
	out := &nodepb.StatsResponse{First: int64(r.First), Steps: int64(r.Count)}
	for i := range r.Services {
		one := &r.Services[i]
		series := &nodepb.ServiceStats{
			Service: one.Service, Started: one.Started, Succeeded: one.Succeeded, Failed: one.Failed, Cancelled: one.Cancelled, Retries: one.Retries,
			InFlight: one.InFlight, Backlog: one.Backlog,
		}
		for step := range one.Latencies {
			for bucket, n := range one.Latencies[step] {
				if n > 0 {
					series.Latencies = append(series.Latencies, &nodepb.LatencyCount{Step: uint32(step), Bucket: uint32(bucket), Count: n})
				}
			}
		}
		out.Services = append(out.Services, series)
	}
	return out
}

// statsFromProto converts the series of another node and checks that they fit the query.
func statsFromProto(in *nodepb.StatsResponse, q stats.Query) (stats.Result, error) {
	r := stats.Result{First: int(in.First), Count: int(in.Steps)}
	if steps := (q.To-q.From)/q.Step + 1; in.First < 0 || in.First > steps || in.Steps < 0 || in.Steps > steps-in.First {
		return r, errors.New("its series do not fit the request")
	}
	for _, one := range in.Services {
		series := stats.Series{
			Service: one.Service, Started: one.Started, Succeeded: one.Succeeded, Failed: one.Failed, Cancelled: one.Cancelled, Retries: one.Retries,
			InFlight: one.InFlight, Backlog: one.Backlog, Latencies: make([][stats.Buckets]uint64, r.Count),
		}
		for _, list := range [][]uint64{one.Started, one.Succeeded, one.Failed, one.Cancelled, one.Retries, one.InFlight, one.Backlog} {
			if len(list) != r.Count {
				return r, errors.New("its series have different lengths")
			}
		}
		for _, l := range one.Latencies {
			if int(l.Step) >= r.Count || l.Bucket >= stats.Buckets {
				return r, errors.New("its latencies do not fit the request")
			}
			series.Latencies[l.Step][l.Bucket] += l.Count
		}
		r.Services = append(r.Services, series)
	}
	return r, nil
}

// NodeStats are the series of one node, or the reason why there are none.
type NodeStats struct {
	Node   metadata.Node
	Result stats.Result
	Err    error
}

// Stats requests the series of all nodes, including this one, in the order of their names.
func (n *Nodes) Stats(ctx context.Context, q stats.Query) []NodeStats {
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	layout, _ := n.server.Metadata().Layout()
	return fromEach(layout.Nodes, func(node metadata.Node) NodeStats {
		result, err := n.statsOf(ctx, node, q)
		return NodeStats{Node: node, Result: result, Err: err}
	})
}

func (n *Nodes) statsOf(ctx context.Context, node metadata.Node, q stats.Query) (stats.Result, error) {
	if n.isSelf(node) {
		return n.server.cfg.Stats.Select(q), nil
	}
	resp, err := send(ctx, n, node, nodepb.NodeClusterClient.Stats, &nodepb.StatsRequest{
		ClusterId: n.server.ClusterID(), From: q.From, To: q.To, Step: q.Step, Services: uint32(q.Services), Service: q.Service,
	})
	if err := responseError(resp, err); err != nil {
		return stats.Result{}, err
	}
	return statsFromProto(resp, q)
}
