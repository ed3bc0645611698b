package metadata

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"platform/internal/ids"
	pb "platform/proto/metadata"
)

// recordChange appends a record for an action whose command made the writes from index first on,
// unless they change nothing. old is the state before it.
func (d *draft) recordChange(at time.Time, action *Action, old *state, first int) error {
	r := AuditRecord{At: at, Action: *action}
	r.Before, r.After = digests(old, d.writes[first:])
	if bytes.Equal(r.Before, r.After) {
		return nil
	}
	return d.record(&r)
}

// digests returns hashes of the changed records before and after their writes.
func digests(old *state, writes []write) (before, after []byte) {
	was, is := sha256.New(), sha256.New()
	var existed, exists bool
	for _, w := range writes {
		if stored := old.stored(w.table, w.key); stored != nil {
			existed = true
			hashRecord(was, w, stored)
		}
		if w.value != nil {
			exists = true
			hashRecord(is, w, w.value[4:]) // without checksum
		}
	}
	if existed {
		before = was.Sum(nil)
	}
	if exists {
		after = is.Sum(nil)
	}
	return before, after
}

func hashRecord(h interface{ Write([]byte) (int, error) }, w write, value []byte) {
	for _, part := range [][]byte{[]byte(w.table), []byte(w.key), value} {
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part)))) // hashes do not fail
		_, _ = h.Write(part)
	}
}

// stored returns the encoded record of a table that administrators can change, nil if there is
// none.
func (s *state) stored(table, key string) []byte {
	var message interface{ MarshalVT() ([]byte, error) }
	switch table {
	case tableCluster:
		if s.cluster.ID != "" {
			message = clusterToProto(s.cluster)
		}
	case tableDeployments:
		if d := s.schemas.Deployments[ids.Deployment(key)]; d != nil {
			message = deploymentToProto(d)
		}
	case tableKeptOptions:
		if o := s.schemas.Kept[key]; o != nil {
			message = &pb.KeptOptions{Service: key, Options: optionsToProto(o)}
		}
	case tableNodes:
		if n, known := s.node(key); known {
			message = nodeToProto(n)
		}
	case tableJobs:
		if j, known := s.job(key); known {
			message = jobToProto(&j)
		}
	case tableTokens:
		if t, known := s.token(key); known {
			message = tokenToProto(&t)
		}
	case tableAuthority:
		if s.authority != nil {
			message = authorityToProto(s.authority)
		}
	case tableJoinTokens:
		if t, known := s.joinToken(key); known {
			message = joinTokenToProto(&t)
		}
	case tableFailureMarks:
		if m, known := s.failureMark(key); known {
			message = failureMarkToProto(&m)
		}
	case tableSubscriptions:
		if sub, known := s.subscription(key); known {
			message = subscriptionToProto(&sub)
		}
	case tableKafkaClusters:
		if c, known := s.kafkaCluster(key); known {
			message = kafkaClusterToProto(&c)
		}
	case tableRules:
		for i := range s.book.Rules {
			if r := &s.book.Rules[i]; r.Pattern.String() == key {
				message = ruleToProto(r)
			}
		}
	}
	if message == nil {
		return nil
	}
	value, err := message.MarshalVT()
	if err != nil {
		return nil
	}
	return value
}
