package codec

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/feature"
	"platform/partition/journal"
	"platform/partition/machine"
)

var (
	// ErrVersion is wrapped when a log entry has a feature level that this server does not
	// support.
	ErrVersion = errors.New("log entry has an unsupported feature level")
	// ErrUnknownCommand is wrapped when a log entry has a command that this server does not
	// know.
	ErrUnknownCommand = errors.New("unknown log command")
	// errTooDeep is returned for a future nested deeper than journal.MaxDepth.
	errTooDeep = errors.New("future is nested too deeply")
)

// EncodeCommand encodes one command for Seal at a feature level, which must not be above
// the level given to Seal. It returns a *feature.Error if the command needs a higher
// level, errTooDeep if it contains too deep a future, and ErrUnknownCommand for a type that
// is not a log command.
//
// A large command is encoded framed: as a log entry with spare capacity for the fields that
// Seal adds, so that Seal does not copy its bytes.
func EncodeCommand(level feature.Level, c machine.Command) ([]byte, error) {
	size := CommandSize(c)
	large := size >= largeCommand
	var w writer
	var n nested
	if large {
		w.b = make([]byte, 0, size+entryOverhead)
		w.uint(fieldLogEntryVersion, uint64(feature.Level1)) // overwritten by Seal
		n = w.open(fieldLogEntryCommands, size)
	} else {
		w.b = make([]byte, 0, size)
	}
	if err := w.command(c); err != nil {
		return nil, err
	}
	if w.needs > level {
		return nil, feature.Require(level, w.needs, w.neededBy)
	}
	if large {
		w.close(n)
	}
	return w.b, nil
}

// ForLevel returns a command for EncodeCommand: without what is optional and cannot be read at a
// level. Those are the baggage of an invocation and what is known about its ID, for which a request
// need not fail. Records of event streams need the level of baggage anyway.
func ForLevel(level feature.Level, c machine.Command) machine.Command {
	inv, ok := c.(*machine.Invoke)
	if !ok || level >= feature.Level4 || inv.Trace.Baggage == "" && !inv.Fresh && inv.Since == (machine.Moment{}) {
		return c
	}
	older := *inv // the caller may retry it, possibly elsewhere
	older.Trace.Baggage, older.Fresh, older.Since = "", false, machine.Moment{}
	return &older
}

const (
	// largeCommand is the estimated size from which a command is encoded framed. Such a
	// command is usually alone in its entry; otherwise Seal copies it like others.
	largeCommand = 16 << 10
	// entryOverhead is the maximum size of an entry with one command, without the command.
	entryOverhead = 48
)

// isFramed reports whether EncodeCommand encoded a command as a log entry.
func isFramed(command []byte) bool {
	return len(command) > 0 && command[0] == byte(fieldLogEntryVersion<<3|protowire.VarintType)
}

func (w *writer) command(c machine.Command) error {
	switch c := c.(type) {
	case *machine.Lead:
		n := w.open(fieldCommandLead, sizeHint)
		w.lead(c)
		w.close(n)
	case *machine.Invoke:
		w.invoke(fieldCommandInvoke, c)
	case *machine.Progress:
		for i := range c.Steps {
			if f := c.Steps[i].Await; f != nil && tooDeep(f, 1) {
				return errTooDeep
			}
		}
		n := w.open(fieldCommandProgress, cap(w.b)-len(w.b)-8)
		w.progress(c)
		w.close(n)
	case *machine.FireTimers:
		n := w.open(fieldCommandFireTimers, cap(w.b)-len(w.b)-8)
		w.fireTimers(c)
		w.close(n)
	case *machine.Deliver:
		n := w.open(fieldCommandDeliver, cap(w.b)-len(w.b)-8)
		if err := w.deliver(c); err != nil {
			return err
		}
		w.close(n)
	case *machine.Acknowledge:
		n := w.open(fieldCommandAcknowledge, sizeHint)
		w.acknowledge(c)
		w.close(n)
	case *machine.Signal:
		w.signal(fieldCommandSignal, c)
	case *machine.Kill:
		w.kill(fieldCommandKill, c)
	case *machine.Pause:
		w.pause(fieldCommandPause, c)
	case *machine.Resume:
		w.resume(fieldCommandResume, c)
	case *machine.Purge:
		w.purge(fieldCommandPurge, c)
	case *machine.Restart:
		w.restart(fieldCommandRestart, c)
	case *machine.SetRules:
		w.setRules(fieldCommandSetRules, c)
	case *machine.PauseQueue:
		w.pauseQueue(fieldCommandPauseQueue, c)
	case *machine.Digest:
		w.digest(fieldCommandDigest, c)
	case *machine.Ingest:
		n := w.open(fieldCommandIngest, cap(w.b)-len(w.b)-8)
		w.ingest(c)
		w.close(n)
	case *machine.PutPosition:
		w.putPosition(fieldCommandPutPosition, c)
	case *machine.ForgetStreams:
		w.forgetStreams(fieldCommandForgetStreams, c)
	case *machine.SetAside:
		w.setAside(fieldCommandSetAside, c)
	case *machine.DropDeadLetters:
		w.dropDeadLetters(fieldCommandDropDeadLetters, c)
	default:
		return fmt.Errorf("encode %T: %w", c, ErrUnknownCommand)
	}
	return nil
}

// Seal returns the data of a log entry made of encoded commands: level is the minimum
// feature level of readers, epoch the proposer's leader epoch, now its clock in Unix
// milliseconds. Seal takes ownership of the commands.
func Seal(level feature.Level, epoch uint64, now int64, commands [][]byte) []byte {
	if len(commands) == 1 && isFramed(commands[0]) {
		commands[0][1] = byte(level)
		w := writer{b: commands[0]}
		w.uint(fieldLogEntryLeaderEpoch, epoch)
		w.int(fieldLogEntryTime, now)
		return w.b
	}
	size := 32
	for _, c := range commands {
		size += len(c) + 6
	}
	w := writer{b: make([]byte, 0, size)}
	w.uint(fieldLogEntryVersion, uint64(level))
	w.uint(fieldLogEntryLeaderEpoch, epoch)
	w.int(fieldLogEntryTime, now)
	for _, c := range commands {
		w.bytes(fieldLogEntryCommands, unframe(c))
	}
	return w.b
}

// unframe returns the bytes of a command without the log entry that EncodeCommand may have
// put around it.
func unframe(command []byte) []byte {
	if !isFramed(command) {
		return command
	}
	r := reader{b: command}
	r.next()
	r.u64() // version
	r.next()
	return r.bytes()
}

// Decode decodes a log entry. The commands alias data. Errors wrap ErrVersion,
// ErrUnknownCommand or ErrMalformed.
func Decode(data []byte) (h machine.Header, commands []machine.Command, err error) {
	r := reader{b: data}
	for r.next() {
		switch r.field {
		case fieldLogEntryVersion:
			h.Level = feature.Level(r.u32())
		case fieldLogEntryLeaderEpoch:
			h.Epoch = r.u64()
		case fieldLogEntryTime:
			h.Time = r.i64()
		case fieldLogEntryCommands:
			if err := readable(h.Level); err != nil {
				return h, nil, err
			}
			c := grow(&r, &commands)
			decodeInto(&r, c, readCommand)
		default:
			r.unknown("log entry")
		}
	}
	if r.err == nil {
		r.err = readable(h.Level)
	}
	if r.err != nil {
		return h, nil, fmt.Errorf("decode log entry: %w", r.err)
	}
	return h, commands, nil
}

// readable returns an error wrapping ErrVersion unless this server supports the level.
func readable(level feature.Level) error {
	if level < feature.Oldest || level > feature.Supported() {
		return fmt.Errorf("%w: %d, this server supports %d to %d", ErrVersion, level, feature.Oldest, feature.Supported())
	}
	return nil
}

func readCommand(b []byte, into *machine.Command) error {
	r := reader{b: b}
	if !r.next() {
		return errors.Join(r.err, fmt.Errorf("%w: command has no kind", ErrUnknownCommand))
	}
	switch r.field {
	case fieldCommandLead:
		*into = decodeNew(&r, readLead)
	case fieldCommandInvoke:
		*into = decodeNew(&r, readInvoke)
	case fieldCommandProgress:
		*into = decodeNew(&r, readProgress)
	case fieldCommandFireTimers:
		*into = decodeNew(&r, readFireTimers)
	case fieldCommandDeliver:
		*into = decodeNew(&r, readDeliver)
	case fieldCommandAcknowledge:
		*into = decodeNew(&r, readAcknowledge)
	case fieldCommandSignal:
		*into = decodeNew(&r, readSignal)
	case fieldCommandKill:
		*into = decodeNew(&r, readKill)
	case fieldCommandPause:
		*into = decodeNew(&r, readPause)
	case fieldCommandResume:
		*into = decodeNew(&r, readResume)
	case fieldCommandPurge:
		*into = decodeNew(&r, readPurge)
	case fieldCommandRestart:
		*into = decodeNew(&r, readRestart)
	case fieldCommandSetRules:
		*into = decodeNew(&r, readSetRules)
	case fieldCommandPauseQueue:
		*into = decodeNew(&r, readPauseQueue)
	case fieldCommandDigest:
		*into = decodeNew(&r, readDigest)
	case fieldCommandIngest:
		*into = decodeNew(&r, readIngest)
	case fieldCommandPutPosition:
		*into = decodeNew(&r, readPutPosition)
	case fieldCommandForgetStreams:
		*into = decodeNew(&r, readForgetStreams)
	case fieldCommandSetAside:
		*into = decodeNew(&r, readSetAside)
	case fieldCommandDropDeadLetters:
		*into = decodeNew(&r, readDropDeadLetters)
	default:
		return fmt.Errorf("%w: kind %d", ErrUnknownCommand, r.field)
	}
	if r.err == nil && !r.atEnd() {
		r.err = fmt.Errorf("%w: command has more than one kind", ErrMalformed)
	}
	return r.err
}

// CommandSize estimates the encoded size of a command, erring on the high side.
func CommandSize(c machine.Command) int {
	switch c := c.(type) {
	case *machine.Invoke:
		return invokeSize(c)
	case *machine.Lead:
		return 64 + len(c.Node)
	case *machine.Progress:
		size := 96 + len(c.Pin.Deployment)
		for i := range c.Steps {
			size += stepSize(&c.Steps[i]) + 8
		}
		return size
	case *machine.FireTimers:
		size := 16 + 64*len(c.Timers)
		for i := range c.Timers {
			size += len(c.Timers[i].Name)
		}
		return size
	case *machine.Deliver:
		size := 48
		for _, m := range c.Messages {
			size += MessageSize(m) + 8
		}
		return min(size, math.MaxInt32)
	case *machine.Signal:
		return 16 + signalSize(c)
	case *machine.Kill:
		return 16 + killSize
	case *machine.Pause:
		return 64 + len(c.By) + len(c.Reason) + len(c.Repin) + attemptFailureSize(c.Failure)
	case *machine.Resume:
		return 64 + repinSize(c.Repin)
	case *machine.Restart:
		return 96 + len(c.ServerVersion) + repinSize(c.Repin)
	case *machine.SetRules:
		return 16 + ruleBookSize(c.Book)
	case *machine.PauseQueue:
		k := &c.Queue
		return 96 + len(k.Scope) + len(k.LimitKey.L1) + len(k.LimitKey.L2) + len(k.Service) + len(c.By) + len(c.Reason)
	case *machine.Digest:
		return 16 + digestSize(c)
	case *machine.Ingest:
		return ingestSize(c)
	case *machine.PutPosition:
		return 16 + positionSize(&c.Position)
	case *machine.ForgetStreams:
		return 64 + len(c.Subscription)
	case *machine.SetAside:
		return setAsideSize(c)
	case *machine.DropDeadLetters:
		return dropDeadLettersSize(c)
	default:
		return 64
	}
}

func invokeSize(c *machine.Invoke) int {
	size := 256 + len(c.Input) + targetSize(&c.Target) + len(c.LimitKey) + len(c.ServerVersion)
	size += len(c.Source.CallerTarget) + len(c.Source.Subscription) + len(c.Trace.Parent) + len(c.Trace.State) + len(c.Trace.Baggage)
	if c.IdempotencyKey != nil {
		size += len(*c.IdempotencyKey)
	}
	return size
}

func targetSize(t *machine.Target) int {
	return len(t.Scope) + len(t.Service) + len(t.Key) + len(t.Handler)
}

func repinSize(p *machine.Repin) int {
	if p == nil {
		return 0
	}
	return 16 + len(p.Deployment)
}

func stepSize(s *machine.Step) int {
	size := 40 + len(s.Payload) + attemptFailureSize(s.Failure)
	if s.Callee != nil {
		size += 64
	}
	if s.Await != nil {
		size += 16 + futureSize(s.Await)
	}
	return size
}

func attemptFailureSize(f *machine.AttemptFailure) int {
	if f == nil {
		return 0
	}
	return 64 + len(f.ErrorCode) + len(f.Message) + len(f.Stacktrace) + len(f.RelatedName)
}

// MessageSize estimates the encoded size of a message, erring on the high side.
func MessageSize(m machine.Message) int {
	switch m := m.(type) {
	case *machine.Invoke:
		return invokeSize(m)
	case *machine.Complete:
		return 64 + resultSize(&m.Result)
	case *machine.Signal:
		return signalSize(m)
	case *machine.Kill:
		return killSize
	case *machine.Attach:
		return 160 + len(m.Named.Scope) + len(m.Named.Service) + len(m.Named.Key) + len(m.Named.Handler)
	default:
		return 64
	}
}

// killSize is the largest encoded size of a kill.
const killSize = 96

func resultSize(v *journal.Result) int {
	size := len(v.Value)
	if v.Failure != nil {
		size += 48 + len(v.Failure.Message)
		for i := range v.Failure.Metadata {
			size += 16 + len(v.Failure.Metadata[i].Key) + len(v.Failure.Metadata[i].Value)
		}
	}
	return size
}
