package codec

import (
	"reflect"
	"slices"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"platform/flowcontrol"
	"platform/internal/feature"
	"platform/partition/journal"
	"platform/partition/machine"
)

// kind is a type with a standalone encoding: a log command or a record.
type kind struct {
	name   string
	blank  func() any // returns a pointer to a zero value
	encode func(any) ([]byte, error)
	decode func([]byte) (any, error)
	proto  func() proto.Message
}

func commandKind[T any](name string) kind {
	return kind{
		name:  name,
		blank: func() any { return new(T) },
		encode: func(v any) ([]byte, error) {
			return EncodeCommand(feature.Supported(), v.(machine.Command))
		},
		decode: func(b []byte) (any, error) {
			var c machine.Command
			err := readCommand(b, &c)
			return c, err
		},
		proto: newProtoCommand,
	}
}

func recordKind[T any](name string, proto func() proto.Message, encode func([]byte, *T) []byte, decode func([]byte) (T, error)) kind {
	return kind{
		name:   name,
		blank:  func() any { return new(T) },
		encode: func(v any) ([]byte, error) { return encode(nil, v.(*T)), nil },
		decode: func(b []byte) (any, error) {
			v, err := decode(b)
			return &v, err
		},
		proto: proto,
	}
}

// messageKind is a kind that is encoded through the Message interface.
func messageKind[T any](name string) kind {
	return kind{
		name:   name,
		blank:  func() any { return new(T) },
		encode: func(v any) ([]byte, error) { return AppendMessage(nil, v.(machine.Message)) },
		decode: func(b []byte) (any, error) { return DecodeMessage(b) },
		proto:  newProtoMessage,
	}
}

var commandKinds = []kind{
	commandKind[machine.Lead]("command-lead"),
	commandKind[machine.Invoke]("command-invoke"),
	commandKind[machine.Progress]("command-progress"),
	commandKind[machine.FireTimers]("command-fire-timers"),
	commandKind[machine.Deliver]("command-deliver"),
	commandKind[machine.Acknowledge]("command-acknowledge"),
	commandKind[machine.Signal]("command-signal"),
	commandKind[machine.Kill]("command-kill"),
	commandKind[machine.Pause]("command-pause"),
	commandKind[machine.Resume]("command-resume"),
	commandKind[machine.Purge]("command-purge"),
	commandKind[machine.Restart]("command-restart"),
	commandKind[machine.SetRules]("command-set-rules"),
	commandKind[machine.PauseQueue]("command-pause-queue"),
	commandKind[machine.Digest]("command-digest"),
	commandKind[machine.Ingest]("command-ingest"),
	commandKind[machine.PutPosition]("command-put-position"),
	commandKind[machine.ForgetStreams]("command-forget-streams"),
	commandKind[machine.SetAside]("command-set-aside"),
	commandKind[machine.DropDeadLetters]("command-drop-dead-letters"),
}

// recordKinds are the types stored in tables.
var recordKinds = []kind{
	messageKind[machine.Invoke]("message-invoke"),
	messageKind[machine.Complete]("message-complete"),
	messageKind[machine.Signal]("message-signal"),
	messageKind[machine.Kill]("message-kill"),
	messageKind[machine.Attach]("message-attach"),
	{
		name:   "record-invocation",
		blank:  func() any { return new(machine.Invocation) },
		encode: func(v any) ([]byte, error) { return AppendInvocation(nil, v.(*machine.Invocation)), nil },
		decode: func(b []byte) (any, error) { return DecodeInvocation(b) },
		proto:  newProtoInvocation,
	},
	recordKind("record-entry", newProtoEntry, AppendEntry, DecodeEntry),
	recordKind("record-lock", newProtoLock, func(b []byte, l *machine.Lock) []byte { return AppendLock(b, *l) }, DecodeLock),
	recordKind("record-promise", newProtoPromise, func(b []byte, p *machine.Promise) []byte { return AppendPromise(b, *p) }, DecodePromise),
	recordKind("record-meta", newProtoMeta, AppendMeta, DecodeMeta),
	recordKind("record-counter", newProtoCounter, AppendCounter, DecodeCounter),
	recordKind("record-vqueue", newProtoVQueue, AppendVQueue, DecodeVQueue),
	recordKind("record-queued", newProtoQueued, func(b []byte, q *flowcontrol.Queued) []byte { return AppendQueued(b, *q) }, DecodeQueued),
	recordKind("record-child", newProtoChild, func(b []byte, c *flowcontrol.Child) []byte { return AppendChild(b, *c) }, DecodeChild),
	recordKind("record-rules", newProtoRules, AppendRules, DecodeRules),
	recordKind("record-position", newProtoPosition, AppendPosition, DecodePosition),
	recordKind("record-event", newProtoEvent, AppendEvent, DecodeEvent),
	recordKind("record-dead-letter", newProtoDeadLetter, AppendDeadLetter, DecodeDeadLetter),
}

var kinds = slices.Concat(commandKinds, recordKinds)

// values is the source of values for fill: a fixed sequence or rapid.
type values interface {
	number(bits int) uint64
	text() string
	length() int // of a slice; 0 leaves it nil
	present() bool
}

// messages are the types that implement Message.
var messages = []reflect.Type{
	reflect.TypeFor[machine.Invoke](), reflect.TypeFor[machine.Complete](), reflect.TypeFor[machine.Signal](),
	reflect.TypeFor[machine.Kill](), reflect.TypeFor[machine.Attach](),
}

// fill sets every field of v by reflection, so that the tests fail if the codec omits a
// field.
func fill(v reflect.Value, from values, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), from, depth)
		}
		switch s := v.Addr().Interface().(type) {
		case *machine.Signal:
			s.ID.Signal = true // implied, not encoded
		case *machine.Attach:
			if s.Legacy.IsZero() {
				s.Named = journal.Named{} // encoded with the legacy ID only
			}
		}
	case reflect.String:
		v.SetString(from.text())
	case reflect.Bool:
		v.SetBool(from.number(1) == 1)
	case reflect.Int64:
		v.SetInt(int64(from.number(64)))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(from.number(v.Type().Bits()))
	case reflect.Array: // ids
		for i := range v.Len() {
			fill(v.Index(i), from, depth)
		}
	case reflect.Pointer:
		if from.present() {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), from, depth)
		}
	case reflect.Slice:
		fillList(v, from, depth)
	case reflect.Interface:
		m := reflect.New(messages[from.number(8)%uint64(len(messages))])
		fill(m.Elem(), from, depth)
		v.Set(m)
	default:
		panic("cannot fill a " + v.Type().String())
	}
}

func fillList(v reflect.Value, from values, depth int) {
	n := from.length()
	if v.Type() == reflect.TypeFor[[]journal.Future]() && depth > 2 {
		n = 0
	}
	if n == 0 {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		fill(v.Index(i), from, depth+1)
	}
}

// sequence returns distinct values, none of them zero.
type sequence struct{ n uint64 }

func (s *sequence) number(bits int) uint64 {
	s.n++
	switch bits {
	case 1:
		return 1
	case 8:
		return s.n%200 + 1
	case 16:
		return s.n%1000 + 0x400
	default:
		return s.n*1000 + 1
	}
}

func (s *sequence) text() string {
	s.n++
	return "text-" + string(rune('a'+s.n%26)) + string(rune('a'+s.n/26%26))
}
func (s *sequence) length() int   { return 2 }
func (s *sequence) present() bool { return true }

// full returns a value with all fields set.
func (k *kind) full() any {
	v := k.blank()
	fill(reflect.ValueOf(v).Elem(), new(sequence), 0)
	return v
}

// drawn draws its values from rapid.
type drawn struct {
	t    *rapid.T
	utf8 bool
}

func (d drawn) number(bits int) uint64 {
	return rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64()).Draw(d.t, "number") & (1<<bits - 1)
}

func (d drawn) text() string {
	if d.utf8 {
		return rapid.StringN(-1, -1, 200).Draw(d.t, "text")
	}
	return string(rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(d.t, "text"))
}

func (d drawn) length() int   { return rapid.IntRange(0, 3).Draw(d.t, "length") }
func (d drawn) present() bool { return rapid.Bool().Draw(d.t, "present") }

// draw returns an arbitrary value of the kind.
func (k *kind) draw(t *rapid.T, utf8 bool) any {
	v := k.blank()
	fill(reflect.ValueOf(v).Elem(), drawn{t, utf8}, 0)
	return v
}
