package journal

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"platform/proto/service"
)

func TestNameOf(t *testing.T) {
	run, err := (&service.RunCommandMessage{ResultCompletionId: 7, Name: "charge card"}).MarshalVT()
	require.NoError(t, err)
	require.Equal(t, "charge card", NameOf(Entry{Type: Run, Payload: run}))
	require.Empty(t, NameOf(Entry{Type: RunCompletion, Payload: run}), "notifications have no name")
	require.Empty(t, NameOf(Entry{Type: Run}))
	for cut := range run {
		require.NotPanics(t, func() { NameOf(Entry{Type: Run, Payload: run[:cut]}) })
	}
}

func TestCompletionsOf(t *testing.T) {
	entry := func(typ Type, m message) Entry { return Entry{Type: typ, Payload: marshal(t, m)} }
	for name, c := range map[string]struct {
		e    Entry
		want []uint32
	}{
		"call":         {entry(Call, &service.CallCommandMessage{ServiceName: "S", InvocationIdNotificationIdx: 4, ResultCompletionId: 5, Name: "n"}), []uint32{4, 5}},
		"one-way call": {entry(OneWayCall, &service.OneWayCallCommandMessage{InvocationIdNotificationIdx: 6, InvokeTime: 11}), []uint32{6}},
		"run":          {entry(Run, &service.RunCommandMessage{ResultCompletionId: 7, Name: "n"}), []uint32{7}},
		"sleep":        {entry(Sleep, &service.SleepCommandMessage{WakeUpTime: 10, ResultCompletionId: 300}), []uint32{300}},
		"promise":      {entry(GetPromise, &service.GetPromiseCommandMessage{Key: "p", ResultCompletionId: 8}), []uint32{8}},
		"attach":       {entry(AttachInvocation, &service.AttachInvocationCommandMessage{ResultCompletionId: 9}), []uint32{9}},
		"set state":    {entry(SetState, &service.SetStateCommandMessage{Key: []byte("k")}), nil},
		"signal":       {entry(SendSignal, &service.SendSignalCommandMessage{TargetInvocationId: "x"}), nil},
		"output":       {entry(Output, &service.OutputCommandMessage{}), nil},
		"notification": {Entry{Type: SleepCompletion, Payload: NewVoid(3)}, nil},
	} {
		require.Equal(t, c.want, CompletionsOf(c.e), name)
	}
}

// Every command has a message, whose completion IDs are found.
func TestCompletionsOfEveryCommand(t *testing.T) {
	messages := service.File_proto_service_service_proto.Messages()
	for _, typ := range Types() {
		if !typ.IsCommand() {
			continue
		}
		name := typ.Name()
		if typ == GetInvocationOutput { // has the layout of AttachInvocation
			name = AttachInvocation.Name()
		}
		layout := messages.ByName(protoreflect.Name(name + "CommandMessage"))
		require.NotNil(t, layout, "service.proto has no message of the command %s", name)
		m := dynamicpb.NewMessage(layout)
		var want []uint32
		for _, field := range []protowire.Number{fieldIDCompletion, fieldResultCompletion} {
			if f := layout.Fields().ByNumber(field); f != nil && f.Kind() == protoreflect.Uint32Kind {
				m.Set(f, protoreflect.ValueOfUint32(uint32(field)))
				want = append(want, uint32(field))
			}
		}
		payload, err := proto.MarshalOptions{Deterministic: true}.Marshal(m) // in the order of the fields
		require.NoError(t, err)
		require.Equal(t, want, CompletionsOf(Entry{Type: typ, Payload: payload}), "%s", typ)
	}
}
