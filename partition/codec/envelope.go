package codec

import (
	"errors"
	"fmt"
	"math"

	"platform/internal/feature"
	"platform/partition/journal"
	"platform/partition/machine"
)

var (
	// ErrVersion is wrapped when a log entry has a feature level that this server does
	// not support.
	ErrVersion = errors.New("log entry has an unsupported feature level")
	// ErrUnknownCommand is wrapped when a log entry has a command of a newer server.
	ErrUnknownCommand = errors.New("unknown log command")
	// ErrTooDeep refuses a command whose Future is nested too deeply.
	ErrTooDeep = errors.New("future is nested too deeply")
)

// Field numbers of LogEntry and Command in raftlog.proto.
const (
	entryVersion  = 1
	entryEpoch    = 2
	entryTime     = 3
	entryCommands = 4

	kindLead        = 1
	kindInvoke      = 2
	kindProgress    = 3
	kindFireTimers  = 4
	kindDeliver     = 5
	kindAcknowledge = 6
	kindSignal      = 7
	kindKill        = 8
	kindPause       = 9
	kindResume      = 10
	kindPurge       = 11
	kindRestart     = 12
	kindSetRules    = 13
	kindPauseQueue  = 14
	kindDigest      = 15
)

// EncodeCommand encodes one command for Seal at a feature level, which must not be above
// that given to Seal. It fails with a *feature.Error when the command needs a higher
// level, with ErrTooDeep or, for a type that is not a command of the log, with
// ErrUnknownCommand.
//
// A large command is encoded as a log entry that lacks only what Seal adds, with room
// for it, so that its bytes are not copied again.
func EncodeCommand(level feature.Level, c machine.Command) ([]byte, error) {
	size := commandSize(c)
	large := size >= largeCommand
	var w writer
	var n nested
	if large {
		w.b = make([]byte, 0, size+entryRoom)
		w.uint(entryVersion, uint64(feature.Level1)) // Seal writes the level over it
		n = w.open(entryCommands, size)
	} else {
		w.b = make([]byte, 0, size)
	}
	if err := w.command(c); err != nil {
		return nil, err
	}
	if w.needs > level {
		return nil, feature.Require(level, w.needs, w.what)
	}
	if large {
		w.close(n)
	}
	return w.b, nil
}

const (
	// largeCommand is the size from which a command is encoded as an entry. Batches
	// end there as well.
	largeCommand = 256 << 10
	// entryRoom is for the fields of an entry beside its only command.
	entryRoom = 48
)

// isEntry reports whether EncodeCommand made an entry of a command.
func isEntry(command []byte) bool {
	return len(command) > 0 && command[0] == entryVersion<<3|wireVarint
}

func (w *writer) command(c machine.Command) error {
	switch c := c.(type) {
	case *machine.Lead:
		n := w.open(kindLead, partSize)
		w.lead(c)
		w.close(n)
	case *machine.Invoke:
		w.invoke(kindInvoke, c)
	case *machine.Progress:
		for i := range c.Steps {
			if f := c.Steps[i].Await; f != nil && tooDeep(f, 1) {
				return ErrTooDeep
			}
		}
		n := w.open(kindProgress, cap(w.b)-len(w.b)-8)
		w.progress(c)
		w.close(n)
	case *machine.FireTimers:
		n := w.open(kindFireTimers, cap(w.b)-len(w.b)-8)
		w.fireTimers(c)
		w.close(n)
	case *machine.Deliver:
		n := w.open(kindDeliver, cap(w.b)-len(w.b)-8)
		if err := w.deliver(c); err != nil {
			return err
		}
		w.close(n)
	case *machine.Acknowledge:
		n := w.open(kindAcknowledge, partSize)
		w.acknowledge(c)
		w.close(n)
	case *machine.Signal:
		w.signal(kindSignal, c)
	case *machine.Kill:
		w.only(kindKill, &c.Target)
	case *machine.Pause:
		w.pause(kindPause, c)
	case *machine.Resume:
		w.resume(kindResume, c)
	case *machine.Purge:
		w.purge(kindPurge, c)
	case *machine.Restart:
		w.restart(kindRestart, c)
	case *machine.SetRules:
		w.setRules(kindSetRules, c)
	case *machine.PauseQueue:
		w.pauseQueue(kindPauseQueue, c)
	case *machine.Digest:
		w.digest(kindDigest, c)
	default:
		return fmt.Errorf("encode %T: %w", c, ErrUnknownCommand)
	}
	return nil
}

// Seal makes the data of a log entry from encoded commands: level is the feature level
// that readers must support, epoch the proposer's leader epoch, now its clock in
// milliseconds. The commands must not be used afterwards.
func Seal(level feature.Level, epoch uint64, now int64, commands [][]byte) []byte {
	if len(commands) == 1 && isEntry(commands[0]) {
		commands[0][1] = byte(level)
		w := writer{b: commands[0]}
		w.uint(entryEpoch, epoch)
		w.int(entryTime, now)
		return w.b
	}
	size := 32
	for _, c := range commands {
		size += len(c) + 6
	}
	w := writer{b: make([]byte, 0, size)}
	w.uint(entryVersion, uint64(level))
	w.uint(entryEpoch, epoch)
	w.int(entryTime, now)
	for _, c := range commands {
		w.bytes(entryCommands, only(c))
	}
	return w.b
}

// only is the command alone, if EncodeCommand made an entry of it.
func only(command []byte) []byte {
	if !isEntry(command) {
		return command
	}
	r := reader{b: command}
	r.next()
	r.u64() // the version
	r.next()
	return r.bytes()
}

// Decode reads a log entry. The commands point into data. Errors wrap ErrVersion,
// ErrUnknownCommand or ErrMalformed.
func Decode(data []byte) (h machine.Header, commands []machine.Command, err error) {
	r := reader{b: data}
	for r.next() {
		switch r.field {
		case entryVersion:
			h.Level = feature.Level(r.u32())
		case entryEpoch:
			h.Epoch = r.u64()
		case entryTime:
			h.Time = r.i64()
		case entryCommands:
			if err := readable(h.Level); err != nil {
				return h, nil, err
			}
			c := more(&r, &commands)
			into(&r, c, readCommand)
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
		return fmt.Errorf("%w: %d, this server reads %d to %d", ErrVersion, level, feature.Oldest, feature.Supported())
	}
	return nil
}

func readCommand(b []byte, into *machine.Command) error {
	r := reader{b: b}
	if !r.next() {
		return errors.Join(r.err, fmt.Errorf("%w: empty", ErrUnknownCommand))
	}
	switch r.field {
	case kindLead:
		*into = one(&r, readLead)
	case kindInvoke:
		*into = one(&r, readInvoke)
	case kindProgress:
		*into = one(&r, readProgress)
	case kindFireTimers:
		*into = one(&r, readFireTimers)
	case kindDeliver:
		*into = one(&r, readDeliver)
	case kindAcknowledge:
		*into = one(&r, readAcknowledge)
	case kindSignal:
		*into = one(&r, readSignal)
	case kindKill:
		*into = one(&r, readKill)
	case kindPause:
		*into = one(&r, readPause)
	case kindResume:
		*into = one(&r, readResume)
	case kindPurge:
		*into = one(&r, readPurge)
	case kindRestart:
		*into = one(&r, readRestart)
	case kindSetRules:
		*into = one(&r, readSetRules)
	case kindPauseQueue:
		*into = one(&r, readPauseQueue)
	case kindDigest:
		*into = one(&r, readDigest)
	default:
		return fmt.Errorf("%w: kind %d", ErrUnknownCommand, r.field)
	}
	if r.err == nil && !r.ended() {
		r.err = fmt.Errorf("%w: command of two kinds", ErrMalformed)
	}
	return r.err
}

// one reads the message that the current field holds.
func one[T any](r *reader, read func([]byte, *T) error) *T {
	v := new(T)
	into(r, v, read)
	return v
}

// commandSize is about how long the encoded command will be, rather more.
func commandSize(c machine.Command) int {
	switch c := c.(type) {
	case *machine.Invoke:
		return invokeSize(c)
	case *machine.Progress:
		size := 96
		for i := range c.Steps {
			size += stepSize(&c.Steps[i]) + 8
		}
		return size
	case *machine.FireTimers:
		return 16 + 48*len(c.Timers)
	case *machine.Deliver:
		size := 48
		for _, m := range c.Messages {
			size += MessageSize(m) + 8
		}
		return min(size, math.MaxInt32)
	case *machine.Signal:
		return 16 + signalSize(c)
	case *machine.SetRules:
		return 16 + bookSize(c.Book)
	case *machine.Digest:
		return 16 + digestSize(c)
	default:
		return 64
	}
}

func invokeSize(c *machine.Invoke) int {
	size := 192 + len(c.Input) + targetSize(&c.Target) + len(c.Source.CallerTarget) + len(c.LimitKey) + len(c.Trace.Parent) + len(c.Trace.State)
	if c.IdempotencyKey != nil {
		size += len(*c.IdempotencyKey)
	}
	return size
}

func targetSize(t *machine.Target) int {
	return len(t.Scope) + len(t.Service) + len(t.Key) + len(t.Handler)
}

func stepSize(s *machine.Step) int {
	size := 16 + len(s.Payload)
	if s.Callee != nil {
		size += 48
	}
	if s.Failure != nil {
		size += 64 + len(s.Failure.Message) + len(s.Failure.Stacktrace)
	}
	if s.Await != nil {
		size += 64
	}
	return size
}

// MessageSize is about how many bytes a message has, rather more.
func MessageSize(m machine.Message) int {
	switch m := m.(type) {
	case *machine.Invoke:
		return invokeSize(m)
	case *machine.Complete:
		return 64 + resultSize(&m.Result)
	case *machine.Signal:
		return signalSize(m)
	case *machine.Attach:
		return 96 + len(m.Named.Scope) + len(m.Named.Service) + len(m.Named.Key) + len(m.Named.Handler)
	default:
		return 64
	}
}

func resultSize(v *journal.Result) int {
	size := len(v.Value)
	if v.Failure != nil {
		size += 32 + len(v.Failure.Message)
	}
	return size
}
