package metadata

import (
	"crypto/rand"
	"fmt"
	"slices"

	pb "platform/proto/metadata"
)

// Bounds on the stored outcomes of requests. A retry comes within seconds, so the number
// matters only with thousands of changes. The bytes are bounded too, because results can
// contain whole deployments; a few outcomes are kept however large they are.
const (
	maxRequests       = 1024
	maxRequestBytes   = 4 << 20
	minRequests       = 16
	maxRequestIDBytes = 64
)

// request is a request with its outcome.
type request struct {
	index  uint64 // in the log; its key
	id     string
	result []byte // encoded outcome
}

// requests are the last requests with an outcome, the oldest first. A value is immutable.
type requests struct {
	list  []request
	bytes int
}

// newRequestID returns a random request ID.
func newRequestID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	return string(id)
}

func (r *requests) find(id string) (request, bool) {
	at := slices.IndexFunc(r.list, func(known request) bool { return known.id == id })
	if at < 0 {
		return request{}, false
	}
	return r.list[at], true
}

// add appends a stored request.
func (r *requests) add(q request) {
	r.list = append(r.list, q)
	r.bytes += len(q.result)
}

func requestToProto(q request) *pb.Request {
	return &pb.Request{Id: []byte(q.id), Result: q.result, Index: q.index}
}

func requestFromProto(r *pb.Request) request {
	return request{index: r.GetIndex(), id: string(r.GetId()), result: r.GetResult()}
}

// storedOutcome returns the outcome of an earlier entry of the same request.
func (d *draft) storedOutcome(id string) (o outcome, known bool, err error) {
	if id == "" {
		return o, false, nil
	}
	q, known := d.requests.find(id)
	if !known {
		return o, false, nil
	}
	o, err = decodeOutcome(q.result)
	return o, true, err
}

// storeOutcome stores the outcome of a request and deletes the oldest ones.
func (d *draft) storeOutcome(index uint64, id string, o outcome) error {
	if id == "" {
		return nil
	}
	result, err := encodeOutcome(o)
	if err != nil {
		return err
	}
	known := requests{list: slices.Clone(d.requests.list), bytes: d.requests.bytes}
	q := request{index: index, id: id, result: result}
	known.add(q)
	for len(known.list) > maxRequests || known.bytes > maxRequestBytes && len(known.list) > minRequests {
		oldest := known.list[0]
		known.list, known.bytes = known.list[1:], known.bytes-len(oldest.result)
		d.deleteRecord(tableRequests, requestKey(oldest.index))
	}
	d.requests = known
	return d.put(tableRequests, requestKey(index), requestToProto(q))
}

// requestKey returns a key that sorts numerically.
func requestKey(index uint64) string { return fmt.Sprintf("%016x", index) }
