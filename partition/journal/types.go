package journal

import (
	"maps"
	"slices"
	"strconv"

	"platform/internal/ids"
)

// Type is the type code of a message (service protocol, framing). The codes of commands and
// notifications are also stored in the journal.
type Type uint16

// Commands: requests of a handler.
const (
	Input               Type = 0x0400
	Output              Type = 0x0401
	GetLazyState        Type = 0x0402
	SetState            Type = 0x0403
	ClearState          Type = 0x0404
	ClearAllState       Type = 0x0405
	GetLazyStateKeys    Type = 0x0406
	GetEagerState       Type = 0x0407
	GetEagerStateKeys   Type = 0x0408
	GetPromise          Type = 0x0409
	PeekPromise         Type = 0x040A
	CompletePromise     Type = 0x040B
	Sleep               Type = 0x040C
	Call                Type = 0x040D
	OneWayCall          Type = 0x040E
	SendSignal          Type = 0x0410
	Run                 Type = 0x0411
	AttachInvocation    Type = 0x0412
	GetInvocationOutput Type = 0x0413
	CompleteAwakeable   Type = 0x0414
)

// Notifications: results.
const (
	GetLazyStateCompletion        Type = 0x8002
	GetLazyStateKeysCompletion    Type = 0x8006
	GetPromiseCompletion          Type = 0x8009
	PeekPromiseCompletion         Type = 0x800A
	CompletePromiseCompletion     Type = 0x800B
	SleepCompletion               Type = 0x800C
	CallCompletion                Type = 0x800D
	CallInvocationIDCompletion    Type = 0x800E
	RunCompletion                 Type = 0x8011
	AttachInvocationCompletion    Type = 0x8012
	GetInvocationOutputCompletion Type = 0x8013
	Signal                        Type = 0xFBFF
)

// CancelSignal is the built-in signal that requests a handler to end.
const CancelSignal = 1

var names = map[Type]string{
	Input: "Input", Output: "Output", GetLazyState: "GetLazyState", SetState: "SetState", ClearState: "ClearState",
	ClearAllState: "ClearAllState", GetLazyStateKeys: "GetLazyStateKeys", GetEagerState: "GetEagerState",
	GetEagerStateKeys: "GetEagerStateKeys", GetPromise: "GetPromise", PeekPromise: "PeekPromise",
	CompletePromise: "CompletePromise", Sleep: "Sleep", Call: "Call", OneWayCall: "OneWayCall", SendSignal: "SendSignal",
	Run: "Run", AttachInvocation: "AttachInvocation", GetInvocationOutput: "GetInvocationOutput",
	CompleteAwakeable: "CompleteAwakeable",

	GetLazyStateCompletion: "GetLazyState", GetLazyStateKeysCompletion: "GetLazyStateKeys",
	GetPromiseCompletion: "GetPromise", PeekPromiseCompletion: "PeekPromise", CompletePromiseCompletion: "CompletePromise",
	SleepCompletion: "Sleep", CallCompletion: "Call", CallInvocationIDCompletion: "CallInvocationId",
	RunCompletion: "Run", AttachInvocationCompletion: "AttachInvocation",
	GetInvocationOutputCompletion: "GetInvocationOutput", Signal: "Signal",
}

// Types returns all commands and notifications, in the order of their codes.
func Types() []Type { return slices.Sorted(maps.Keys(names)) }

// IsCommand reports whether t is in the range of commands.
func (t Type) IsCommand() bool { return t >= 0x0400 && t < 0x8000 }

// IsNotification reports whether t is in the range of notifications.
func (t Type) IsNotification() bool { return t >= 0x8000 && t <= Signal }

// Known reports whether t is the type of an entry.
func (t Type) Known() bool { return names[t] != "" }

// Name returns the name that users see, "Sleep" for the command and its completion alike.
func (t Type) Name() string {
	if n := names[t]; n != "" {
		return n
	}
	return "0x" + strconv.FormatUint(uint64(t), 16)
}

// String returns the form in the system tables: "Command: Sleep", "Notification: Sleep".
func (t Type) String() string {
	if t.IsNotification() {
		return "Notification: " + t.Name()
	}
	return "Command: " + t.Name()
}

// Entry is one entry of a journal. It never changes once appended.
type Entry struct {
	Type Type
	// Payload is the message's protobuf encoding, for commands exactly as the handler sent
	// it. It is shared between readers and must not be modified.
	Payload []byte
	// AppendedAt is partition time, milliseconds since 1970.
	AppendedAt int64
}

// NotificationID identifies a notification: a completion (Name empty, Signal false), a
// numbered signal (Signal true) or a named signal (Name set).
type NotificationID struct {
	Index  uint32
	Signal bool
	Name   string
}

// Completion returns the ID of the completion of the command with that completion ID.
func Completion(id uint32) NotificationID { return NotificationID{Index: id} }

// NumberedSignal returns the ID of a signal with a number.
func NumberedSignal(index uint32) NotificationID {
	return NotificationID{Index: index, Signal: true}
}

// NamedSignal returns the ID of a signal with a name.
func NamedSignal(name string) NotificationID { return NotificationID{Name: name, Signal: true} }

// Repeats reports whether the journal may contain the notification more than once: a cancel
// or a named signal. Completions and awakeables occur once.
func (id NotificationID) Repeats() bool {
	return id.Signal && (id.Name != "" || id.Index < ids.FirstAwakeable)
}

// Failure is a terminal failure, returned by a handler or created by the server.
type Failure struct {
	Code     uint32
	Message  string
	Metadata []Metadata
}

// Metadata is one pair of a failure's metadata (protocol 6 and later).
type Metadata struct{ Key, Value string }

// Result is an outcome: a value, or a failure if that is set.
type Result struct {
	Value   []byte
	Failure *Failure
}

// Header is one header of an invocation's input.
type Header struct{ Key, Value string }
