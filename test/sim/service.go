package sim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"platform/internal/ids"
	"platform/invoker/protocol"
	"platform/partition/journal"
	pb "platform/proto/service"
)

// errAborted ends a handler whose attempt was aborted.
var errAborted = errors.New("the attempt was given up")

// suspended ends a handler that waits for a notification that this attempt will not receive: a
// completion, or a cancel as well, or a signal if it has a name.
type suspended struct {
	completion uint32
	orCancel   bool
	signal     string
}

// terminal is a failure that a handler returns as its result.
type terminal struct {
	code    uint32
	message string
}

func (t *terminal) Error() string { return t.message }

// replayMismatch is a replay that differs from what the handler does: a defect of the server, since
// the handlers here are deterministic.
type replayMismatch struct{ text string }

// handler executes an invocation and returns the output.
type handler func(c *call) ([]byte, error)

// call is an attempt as a handler sees it, in version 5 of the service protocol.
type call struct {
	sim *Sim
	in  io.Reader
	out io.Writer

	id        ids.Invocation
	key       string
	input     []byte
	state     map[string][]byte
	replayed  []entry // commands of the journal, the input left out
	next      int     // of them
	copied    bool    // some of them are those of another invocation
	replaying bool    // the journal is being read
	ended     bool    // the server sends nothing more
	last      uint32

	// Notifications are processed in the order of the journal, and only while the handler waits for one,
	// so that what it does first is the same in each attempt.
	unprocessed []*pb.NotificationTemplate
	received    map[uint32]bool // completions, processed or not
	cancels     int             // received
	answers     map[uint32]*pb.NotificationTemplate
	signals     map[string]*pb.NotificationTemplate
	cancelled   bool
}

type entry struct {
	kind    journal.Type
	payload []byte
}

func (c *call) read() (entry, error) {
	var head [protocol.HeaderLen]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return entry{}, err
	}
	h := binary.BigEndian.Uint64(head[:])
	payload := make([]byte, uint32(h))
	if _, err := io.ReadFull(c.in, payload); err != nil {
		return entry{}, err
	}
	return entry{journal.Type(h >> 48), payload}, nil
}

// begin reads the start and the journal.
func (c *call) begin() error {
	first, err := c.read()
	if err != nil {
		return err
	}
	var start pb.StartMessage
	if err := start.UnmarshalVT(first.payload); err != nil {
		return err
	}
	c.id, c.key = ids.Invocation(start.Id), start.Key
	c.state, c.answers = map[string][]byte{}, map[uint32]*pb.NotificationTemplate{}
	c.received, c.signals = map[uint32]bool{}, map[string]*pb.NotificationTemplate{}
	c.replaying = true
	defer func() { c.replaying = false }()
	for _, e := range start.StateMap {
		c.state[string(e.Key)] = e.Value
	}
	if start.PartialState && c.key != "" {
		return errors.New("the state is not complete")
	}
	for i := range start.KnownEntries {
		e, err := c.read()
		switch {
		case err != nil:
			return err
		case e.kind == journal.Input:
			var in pb.InputCommandMessage
			if err := in.UnmarshalVT(e.payload); err != nil {
				return err
			}
			c.input = in.Value.GetContent()
		case e.kind.IsCommand():
			c.replayed = append(c.replayed, e)
		default:
			if err := c.addNotification(e); err != nil {
				return fmt.Errorf("entry %d: %w", i, err)
			}
		}
	}
	return nil
}

func (c *call) addNotification(e entry) error {
	n := new(pb.NotificationTemplate)
	if err := n.UnmarshalVT(e.payload); err != nil {
		return err
	}
	switch id := n.Id.(type) {
	case *pb.NotificationTemplate_CompletionId:
		c.received[id.CompletionId] = true
	case *pb.NotificationTemplate_SignalId:
		if id.SignalId == journal.CancelSignal {
			c.cancels++
		}
	case *pb.NotificationTemplate_SignalName:
		if c.sim.history.dropSignal(c.id, c.replaying) {
			return nil
		}
	}
	c.unprocessed = append(c.unprocessed, n)
	return nil
}

// process processes the next notification.
func (c *call) process() {
	n := c.unprocessed[0]
	c.unprocessed = c.unprocessed[1:]
	switch id := n.Id.(type) {
	case *pb.NotificationTemplate_CompletionId:
		c.answers[id.CompletionId] = n
	case *pb.NotificationTemplate_SignalId:
		c.cancelled = c.cancelled || id.SignalId == journal.CancelSignal
	case *pb.NotificationTemplate_SignalName:
		c.signals[id.SignalName] = n
	}
}

// fixedPayload has the commands whose payload is the same in each attempt.
var fixedPayload = map[journal.Type]bool{journal.Call: true, journal.OneWayCall: true, journal.SetState: true}

// command sends a command to the server, unless an earlier attempt has done so.
func (c *call) command(kind journal.Type, m message) []byte {
	payload, err := encode(m)
	if err != nil {
		panic(err)
	}
	if c.next < len(c.replayed) {
		known := c.replayed[c.next]
		c.next++
		if known.kind != kind {
			panic(replayMismatch{fmt.Sprintf("command %d is %s in the journal, the handler wants %s", c.next, known.kind, kind)})
		}
		if fixedPayload[kind] && !c.copied && !bytes.Equal(known.payload, payload) {
			panic(replayMismatch{fmt.Sprintf("command %d, %s, is %q in the journal, the handler wants %q", c.next, kind, known.payload, payload)})
		}
		return known.payload
	}
	c.write(kind, payload)
	return payload
}

func (c *call) write(kind journal.Type, payload []byte) {
	b := protocol.AppendHeader(nil, kind, len(payload))
	if _, err := c.out.Write(append(b, payload...)); err != nil {
		panic(errAborted)
	}
}

// completion returns an unused completion ID.
func (c *call) completion() uint32 {
	c.last++
	return c.last
}

// await returns the completion of a command.
func (c *call) await(completion uint32) *pb.NotificationTemplate {
	c.readUntil(suspended{completion: completion}, func() bool { return c.answers[completion] != nil })
	return c.answers[completion]
}

// awaitUnlessCancelled waits for the completion of a command, or a cancel, which may have arrived before.
func (c *call) awaitUnlessCancelled(completion uint32) (cancelled bool) {
	c.readUntil(suspended{completion: completion, orCancel: true}, func() bool { return c.answers[completion] != nil || c.cancelled })
	return c.answers[completion] == nil
}

// awaitSignal waits for a signal.
func (c *call) awaitSignal(name string) {
	c.readUntil(suspended{signal: name}, func() bool { return c.signals[name] != nil })
}

// readUntil reads what the server sends until what the handler waits for is there.
func (c *call) readUntil(waiting suspended, there func() bool) {
	for !there() {
		if len(c.unprocessed) > 0 {
			c.process()
			continue
		}
		if c.ended {
			panic(waiting)
		}
		e, err := c.read()
		switch {
		case errors.Is(err, io.EOF):
			c.ended = true
		case err != nil:
			panic(errAborted)
		case e.kind.IsNotification():
			if err := c.addNotification(e); err != nil {
				panic(err)
			}
		}
	}
}

// readFor reads what the server sends for a duration.
func (c *call) readFor(d time.Duration) {
	b, ok := c.in.(*body)
	if !ok {
		panic("a request without a body")
	}
	b.deadline = time.After(d)
	defer func() { b.deadline = nil }()
	for {
		e, err := c.read()
		switch {
		case errors.Is(err, io.EOF):
			c.ended = true
			return
		case errors.Is(err, errDeadline):
			return
		case err != nil:
			panic(errAborted)
		case e.kind.IsNotification():
			if err := c.addNotification(e); err != nil {
				panic(err)
			}
		}
	}
}

// get reads a value of the object's state.
func (c *call) get(name string) []byte {
	m := &pb.GetEagerStateCommandMessage{Key: []byte(name)}
	if v, ok := c.state[name]; ok {
		m.Result = &pb.GetEagerStateCommandMessage_Value{Value: &pb.Value{Content: v}}
	} else {
		m.Result = &pb.GetEagerStateCommandMessage_Void{Void: &pb.Void{}}
	}
	var known pb.GetEagerStateCommandMessage
	if err := known.UnmarshalVT(c.command(journal.GetEagerState, m)); err != nil {
		panic(err)
	}
	return known.GetValue().GetContent()
}

func (c *call) set(name string, value []byte) {
	c.command(journal.SetState, &pb.SetStateCommandMessage{Key: []byte(name), Value: &pb.Value{Content: value}})
	c.state[name] = value
}

// request calls another handler and returns its output.
func (c *call) request(service, key, handler string, input []byte) []byte {
	return c.await(c.startRequest(service, key, handler, input)).GetValue().GetContent()
}

// requestUnlessCancelled calls another handler and waits for its end or a cancel.
func (c *call) requestUnlessCancelled(service, key, handler string, input []byte) (cancelled bool) {
	return c.awaitUnlessCancelled(c.startRequest(service, key, handler, input))
}

// startRequest calls another handler. Its output is the completion whose ID is returned.
func (c *call) startRequest(service, key, handler string, input []byte) uint32 {
	named, result := c.completion(), c.completion()
	c.command(journal.Call, &pb.CallCommandMessage{
		ServiceName: service, HandlerName: handler, Key: key, Parameter: input,
		InvocationIdNotificationIdx: named, ResultCompletionId: result,
	})
	return result
}

// send starts another handler.
func (c *call) send(service, key, handler string, input []byte) {
	c.command(journal.OneWayCall, &pb.OneWayCallCommandMessage{
		ServiceName: service, HandlerName: handler, Key: key, Parameter: input, InvocationIdNotificationIdx: c.completion(),
	})
}

// getPromise waits for a promise of the workflow and returns its value.
func (c *call) getPromise(key string) []byte {
	done := c.completion()
	c.command(journal.GetPromise, &pb.GetPromiseCommandMessage{Key: key, ResultCompletionId: done})
	return c.await(done).GetValue().GetContent()
}

// completePromise completes a promise of the workflow; false if it was already completed.
func (c *call) completePromise(key string, value []byte) bool {
	done := c.completion()
	c.command(journal.CompletePromise, &pb.CompletePromiseCommandMessage{
		Key: key, ResultCompletionId: done,
		Completion: &pb.CompletePromiseCommandMessage_CompletionValue{CompletionValue: &pb.Value{Content: value}},
	})
	return c.await(done).GetFailure() == nil
}

// sleepUntil waits for a time, milliseconds since 1970. An earlier attempt may have requested
// another time.
func (c *call) sleepUntil(at int64) { c.await(c.startSleep(at)) }

// sleepUnlessCancelled is sleepUntil, or waits for a cancel.
func (c *call) sleepUnlessCancelled(at int64) (cancelled bool) {
	return c.awaitUnlessCancelled(c.startSleep(at))
}

func (c *call) startSleep(at int64) uint32 {
	done := c.completion()
	c.command(journal.Sleep, &pb.SleepCommandMessage{WakeUpTime: uint64(at), ResultCompletionId: done})
	return done
}

// run executes a side effect, whose result is stored.
func (c *call) run(effect func() []byte) []byte {
	done := c.completion()
	c.command(journal.Run, &pb.RunCommandMessage{ResultCompletionId: done})
	if !c.received[done] {
		m := &pb.ProposeRunCompletionMessage{ResultCompletionId: done, Result: &pb.ProposeRunCompletionMessage_Value{Value: effect()}}
		payload, err := encode(m)
		if err != nil {
			panic(err)
		}
		c.write(protocol.ProposeRunCompletion, payload)
	}
	return c.await(done).GetValue().GetContent()
}

// serve runs the handler until it ends, suspends or is aborted.
func (c *call) serve(h handler) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case suspended:
			var payload []byte
			m := &pb.SuspensionMessage{WaitingCompletions: []uint32{p.completion}}
			if p.orCancel {
				m.WaitingSignals = []uint32{journal.CancelSignal}
			}
			if p.signal != "" {
				m = &pb.SuspensionMessage{WaitingNamedSignals: []string{p.signal}}
			}
			if payload, err = encode(m); err == nil {
				defer func() { _ = recover() }() // aborted meanwhile
				c.write(protocol.Suspension, payload)
			}
		case replayMismatch:
			c.sim.violate("replay of %s: %s", c.id, p.text)
			err = errAborted
		case error:
			err = p
		default:
			panic(p)
		}
	}()
	if err := c.begin(); err != nil {
		return err
	}
	output, err := h(c)
	var failure *terminal
	if errors.As(err, &failure) {
		c.command(journal.Output, &pb.OutputCommandMessage{
			Result: &pb.OutputCommandMessage_Failure{Failure: &pb.Failure{Code: failure.code, Message: failure.message}},
		})
		c.write(protocol.End, nil)
		return nil
	}
	if err != nil { // of an attempt, to be retried
		payload, _ := encode(&pb.ErrorMessage{Code: 500, Message: err.Error()})
		c.write(protocol.Error, payload)
		return nil
	}
	c.command(journal.Output, &pb.OutputCommandMessage{Result: &pb.OutputCommandMessage_Value{Value: &pb.Value{Content: output}}})
	c.write(protocol.End, nil)
	return nil
}

func number(b []byte) int64 {
	n, _ := strconv.ParseInt(string(b), 10, 64)
	return n
}

func digits(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
