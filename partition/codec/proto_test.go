package codec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"platform/internal/feature"
	"platform/proto/raftlog"
)

func newProtoCommand() proto.Message    { return new(raftlog.Command) }
func newProtoMessage() proto.Message    { return new(raftlog.Message) }
func newProtoInvocation() proto.Message { return new(raftlog.Invocation) }
func newProtoEntry() proto.Message      { return new(raftlog.JournalEntry) }
func newProtoLock() proto.Message       { return new(raftlog.Lock) }
func newProtoPromise() proto.Message    { return new(raftlog.Promise) }
func newProtoMeta() proto.Message       { return new(raftlog.Meta) }
func newProtoCounter() proto.Message    { return new(raftlog.Counter) }
func newProtoVQueue() proto.Message     { return new(raftlog.VQueue) }
func newProtoQueued() proto.Message     { return new(raftlog.Queued) }
func newProtoChild() proto.Message      { return new(raftlog.Child) }
func newProtoRules() proto.Message      { return new(raftlog.RuleBook) }
func newProtoPosition() proto.Message   { return new(raftlog.StreamPosition) }
func newProtoEvent() proto.Message      { return new(raftlog.Event) }
func newProtoDeadLetter() proto.Message { return new(raftlog.DeadLetter) }

func TestCodecAgreesWithGeneratedCode(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			requireAgree(t, &k, k.full())
			rapid.Check(t, func(t *rapid.T) { requireAgree(t, &k, k.draw(t, true)) })
		})
	}
}

// requireAgree checks that the generated code knows all fields that the codec writes, and
// that the codec decodes what the generated code writes.
func requireAgree(t require.TestingT, k *kind, v any) {
	b, err := k.encode(v)
	require.NoError(t, err)
	m := k.proto()
	require.NoError(t, proto.Unmarshal(b, m))
	requireKnown(t, m.ProtoReflect())

	b, err = proto.Marshal(m)
	require.NoError(t, err)
	got, err := k.decode(b)
	require.NoError(t, err)
	require.Equal(t, v, got)
}

func requireKnown(t require.TestingT, m protoreflect.Message) {
	require.Empty(t, m.GetUnknown(), m.Descriptor().FullName())
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() != protoreflect.MessageKind:
		case f.IsList():
			for i := range v.List().Len() {
				requireKnown(t, v.List().Get(i).Message())
			}
		default:
			requireKnown(t, v.Message())
		}
		return true
	})
}

func TestLogEntryAgreesWithGeneratedCode(t *testing.T) {
	var commands [][]byte
	for _, k := range commandKinds {
		b, err := k.encode(k.full())
		require.NoError(t, err)
		commands = append(commands, b)
	}
	data := Seal(feature.Level1, 7, 1234567890123, commands)
	var m raftlog.LogEntry
	require.NoError(t, proto.Unmarshal(data, &m))
	requireKnown(t, m.ProtoReflect())
	require.EqualValues(t, feature.Level1, m.Version)
	require.EqualValues(t, 7, m.LeaderEpoch)
	require.EqualValues(t, 1234567890123, m.Time)

	generated, err := proto.Marshal(&m)
	require.NoError(t, err)
	_, want, err := Decode(data)
	require.NoError(t, err)
	_, got, err := Decode(generated)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestFieldNumbersAgreeWithDescriptors compares the constants of fields.go with raftlog.proto.
func TestFieldNumbersAgreeWithDescriptors(t *testing.T) {
	want := make(map[string]string)
	messages := raftlog.File_proto_raftlog_raftlog_proto.Messages()
	for i := range messages.Len() {
		fields := messages.Get(i).Fields()
		for j := range fields.Len() {
			f := fields.Get(j)
			want["field"+string(messages.Get(i).Name())+goName(string(f.Name()))] = strconv.Itoa(int(f.Number()))
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "fields.go", nil, 0)
	require.NoError(t, err)
	got := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			got[spec.Names[0].Name] = spec.Values[0].(*ast.BasicLit).Value
		}
		return true
	})
	require.Equal(t, want, got)
}

// goName returns the name of a protobuf field in the style of this package.
func goName(field string) string {
	var name strings.Builder
	for word := range strings.SplitSeq(field, "_") {
		if word == "id" {
			name.WriteString("ID")
			continue
		}
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}
