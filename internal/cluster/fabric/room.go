package fabric

import (
	"bytes"
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"platform/internal/ids"
	"platform/partition/codec"
	"platform/partition/machine"
	"platform/proto/node"
)

const (
	// responseBytes bounds the large responses of a stream that have not been sent, except
	// that a single one may be larger.
	responseBytes = 64 << 20
	// roomTimeout bounds how long a response waits for room. It is well below the time for
	// which results are kept, so that the client can still repeat a call.
	roomTimeout = machine.MinRetention / 2 * time.Millisecond
)

// responseRoom is the room for the large responses of a stream.
type responseRoom struct {
	*semaphore.Weighted
	timeout time.Duration
}

func newResponseRoom(timeout time.Duration) responseRoom {
	return responseRoom{semaphore.NewWeighted(responseBytes), timeout}
}

// roomFor returns the room that a response occupies, 0 for an error or a small one.
func roomFor(r *node.PartitionResponse) int64 {
	n := r.SizeVT()
	if n < pieceBytes || r.Code != node.PartitionCode_PARTITION_CODE_OK {
		return 0
	}
	return int64(min(n, responseBytes))
}

// serve executes a request and reserves room for its response. A response without room is
// dropped and read again once there is room, so that results wait as IDs.
func (in *inbound) serve(ctx context.Context, req *node.PartitionRequest) (r *node.PartitionResponse, room int64) {
	r = in.s.serveRequest(ctx, in.peer, req)
	for outcome := r.Outcome; ; {
		n := roomFor(r)
		if n <= room || in.room.TryAcquire(n-room) {
			return r, max(n, room)
		}
		in.room.release(room)
		again := repeatable(req, r)
		if again == nil {
			if r.Outcome != nil {
				r.Outcome.Result = nil // the caller awaits it
			}
			return r, 0
		}
		r = nil
		if err := in.room.await(ctx, n); err != nil {
			return notRead("too many large responses to this node are waiting: " + err.Error()), 0
		}
		room = n
		r = in.s.serveRequest(ctx, in.peer, again)
		switch {
		case r.Code == node.PartitionCode_PARTITION_CODE_NOT_FOUND, r.Code != node.PartitionCode_PARTITION_CODE_OK && isProposal(req.Method):
			r = notRead("could not read the result again: " + r.Message)
		case isProposal(req.Method) && !isProposal(again.Method):
			r.Outcome = outcome
		}
	}
}

// notRead is the response to a request that had a result which can no longer be read.
func notRead(message string) *node.PartitionResponse {
	return &node.PartitionResponse{Code: node.PartitionCode_PARTITION_CODE_UNKNOWN_OUTCOME, Message: message}
}

// repeatable returns the request that reads the response r to req again, nil if there is
// none.
func repeatable(req *node.PartitionRequest, r *node.PartitionResponse) *node.PartitionRequest {
	if !isProposal(req.Method) {
		return req
	}
	if req.Method != node.PartitionMethod_PARTITION_METHOD_CALL {
		return nil
	}
	c, _ := codec.DecodeCommand(req.Command) // it was decoded before
	inv, ok := c.(*machine.Invoke)
	if !ok || inv.ShortRetention() { // only its request number finds the result
		return req
	}
	id := bytes.Clone(inv.ID[:])
	if other := r.Outcome.GetId(); len(other) == len(ids.Invocation{}) {
		id = other
	}
	return &node.PartitionRequest{Partition: req.Partition, Method: node.PartitionMethod_PARTITION_METHOD_AWAIT, Id: id, Relay: req.Relay}
}

// await reserves room, in the order of the calls, for at most the timeout.
func (w responseRoom) await(ctx context.Context, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	return w.Acquire(ctx, n)
}

func (w responseRoom) release(n int64) {
	if n > 0 {
		w.Release(n)
	}
}
