package invoker

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// hostileAttempts is how many attempts of an invocation share the bytes.
const hostileAttempts = 6

// Bits of a pace: how bytes arrive. The rest is the length of the next piece.
const (
	paceLong   = 0x20 // the piece is 64 times as long
	paceAnswer = 0x40 // proposals are resolved after it
	paceElapse = 0x80 // time passes after it
	paceLength = 0x1f
)

// FuzzStream: for any bytes of an endpoint, split anywhere and with proposals resolved at any time,
// an attempt ends or waits for more, and the machine accepts all of its proposals and keeps its
// tables consistent.
func FuzzStream(f *testing.F) {
	for i, wire := range hostileSequences(f) {
		for target := range hostileTargets {
			f.Add(wire, []byte{paceLong | paceAnswer | paceLength}, hostileSeed(i, target))
			f.Add(wire, []byte{7, 3 | paceAnswer, 1, 30 | paceElapse}, hostileSpread+hostileSeed(i+1, target))
		}
	}
	f.Fuzz(play)
}

// FuzzMessages is FuzzStream for bytes in a form that is always cut into messages of
// known types, so that a fuzzer gets further: type and length, each one byte, then
// the payload.
func FuzzMessages(f *testing.F) {
	for i, wire := range hostileSequences(f) {
		for target := range hostileTargets {
			f.Add(compact(f, wire), []byte{paceAnswer | paceLength}, hostileSeed(i, target)+hostileSpread*uint8(i%2))
		}
	}
	f.Fuzz(func(t *testing.T, messages, pace []byte, kind uint8) {
		var wire []byte
		for len(messages) >= 2 {
			n := min(int(messages[1]), len(messages)-2)
			at := len(wire)
			wire = protocol.AppendHeader(wire, hostileTypes[int(messages[0]&0x7f)%len(hostileTypes)], n)
			wire[at+2] |= messages[0] & 0x80 // an acknowledgement is requested
			wire = append(wire, messages[2:2+n]...)
			messages = messages[2+n:]
		}
		play(t, wire, pace, kind)
	})
}

// hostileSeed is the kind of invocation for a sequence and a target. Seeds use the versions in turn
// instead of all of them: the fuzzer changes the kind itself, and running a seed costs it as much
// as a hundred executions, since it transfers the coverage of this large binary between its
// processes each time.
func hostileSeed(sequence, target int) uint8 {
	n := sequence + target
	return hostileKind(protocol.V5+protocol.Version(n%hostileVersions), n%2 == 0, target)
}

// hostileTypes are what endpoints may send, and some of what they may not.
var hostileTypes = []journal.Type{
	protocol.Suspension, protocol.Error, protocol.End, protocol.ProposeRunCompletion, protocol.AwaitingOn,
	journal.Output, journal.GetLazyState, journal.SetState, journal.ClearState, journal.ClearAllState, journal.GetLazyStateKeys,
	journal.GetEagerState, journal.GetEagerStateKeys, journal.GetPromise, journal.PeekPromise, journal.CompletePromise, journal.Sleep,
	journal.Call, journal.OneWayCall, journal.SendSignal, journal.Run, journal.AttachInvocation, journal.GetInvocationOutput,
	journal.CompleteAwakeable, journal.Input, journal.RunCompletion, protocol.Start, 0xFC00,
}

// compact is the form of FuzzMessages.
func compact(t testing.TB, wire []byte) (b []byte) {
	var d protocol.Decoder
	d.Feed(wire)
	for {
		m, ok, err := d.Next()
		require.NoError(t, err)
		if !ok {
			return b
		}
		selector := byte(slices.Index(hostileTypes, m.Type))
		if m.WantAck {
			selector |= 0x80
		}
		require.Less(t, len(m.Payload), 256)
		b = append(append(b, selector, byte(len(m.Payload))), m.Payload...)
	}
}

// play lets an endpoint send bytes to one attempt after another.
func play(t *testing.T, wire, pace []byte, kind uint8) {
	h := newHostile(t, kind)
	defer h.close()
	for at := 0; len(wire) > 0 && len(h.lines) <= hostileAttempts; {
		w := h.again()
		if w == nil {
			return
		}
		w.respond()
		wire, at = w.feed(wire, pace, at)
	}
	h.wait()
}

// feed sends bytes until there are none or the attempt is over.
func (w *line) feed(bytes, pace []byte, at int) ([]byte, int) {
	for len(bytes) > 0 && !w.over {
		n, then := len(bytes), byte(paceAnswer)
		if len(pace) > 0 {
			then = pace[at%len(pace)]
			at++
			n = int(then&paceLength) + 1
			if then&paceLong != 0 {
				n *= 64
			}
		}
		n = min(n, len(bytes))
		w.send(bytes[:n])
		bytes = bytes[n:]
		if then&paceAnswer != 0 {
			w.h.pump()
		}
		if then&paceElapse != 0 {
			w.h.elapse()
		}
	}
	return bytes, at
}

// wait lets the open attempt finish what it can, and then aborts it.
func (h *hostile) wait() {
	w := h.running()
	if w == nil || w.a.plan == nil {
		h.settle()
		return
	}
	w.a.flush(true) // what lingers
	h.settle()
	h.elapse()
	if w = h.running(); w == nil || w.a.plan == nil {
		return
	}
	var err error
	if len(w.written)%2 == 0 {
		err = errors.New("connection reset")
	}
	w.finish(err)
}

// hostileSequences are those of well-behaved handlers, and some of their mistakes.
func hostileSequences(t testing.TB) [][]byte {
	self := machine.Callee{ID: hostileID}
	value := journal.Result{Value: []byte(`"hi"`)}
	failed := journal.Result{Failure: &journal.Failure{Code: 500, Message: "no"}}
	all := [][]byte{
		concat(t, outputHi, end),
		concat(t, "0411000000000005 5801620172", "0005000000000005 0801720131", frame(journal.Sleep, "08"+"80d095ffbc31"+"5802"),
			"0001000000000006 0a0102120101"),
		concat(t, "0411000000000005 5801620172", "0005800000000005 0801720131", "0006000000000006 0a040a020102", outputHi, end),
		concat(t, frame(journal.Sleep, "08"+"01"+"5801"), "000100000000000a 22080a01011201012801"),
		concat(t, frame(protocol.Error, "08f403 1204626f6f6d 1a02617420 2003 2a0163 3000 38dc0b 4001")),
		concat(t, frame(protocol.Error, "08ba04"), outputHi, end),
		concat(t, "0005000000000005 0809720131", frame(journal.Sleep, "0880d095ffbc315809"), "0001000000000006 0a0109120101"), // not requested
	}
	steps := [][]machine.Step{
		{machinetest.SetState("a", []byte("1")), machinetest.GetState(1, "a"), machinetest.GetStateKeys(2), machinetest.ClearState("a"),
			machinetest.ClearAllState(), machinetest.Output(value)},
		{machinetest.Call(1, 2, counter("k"), []byte("1"), self), machinetest.Send(3, greeter, []byte("2"), 1_700_000_100_000, self),
			machinetest.Call(4, 5, hostileTargets[3], nil, self), machinetest.Output(failed)},
		{machinetest.GetPromise(1, "p"), machinetest.PeekPromise(2, "p"), machinetest.CompletePromise(3, "p", value),
			machinetest.CompletePromise(4, "p", failed), machinetest.Output(value)},
		{machinetest.Attach(1, hostileID), machinetest.GetOutput(2, hostileID), machinetest.SendSignal(hostileID, journal.NumberedSignal(1), nil),
			machinetest.SendSignal(hostileID, journal.NamedSignal("n"), &value), machinetest.CompleteAwakeable(hostileID, 17, failed),
			machinetest.CompleteAwakeable(hostileID, 17, value), machinetest.Run(3, "r")},
		{machinetest.Sleep(1, 1_700_000_900_000), machinetest.Sleep(1, 1_700_000_900_000), machinetest.Sleep(1, 1), // an id again
			machinetest.GetPromise(2, "p"), machinetest.GetPromise(2, "p"), machinetest.Output(value)},
	}
	for _, list := range steps {
		var wire []byte
		for _, s := range list {
			wire = append(protocol.AppendHeader(wire, s.Type, len(s.Payload)), s.Payload...)
		}
		all = append(all, append(wire, concat(t, end)...))
	}
	return all
}
