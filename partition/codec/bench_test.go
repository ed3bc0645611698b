package codec

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/raftlog"
)

func typicalProgress() *machine.Progress {
	return &machine.Progress{
		ID: ids.NewInvocation(7, [16]byte{1}), Attempt: 12345,
		Pin: machine.Pin{Deployment: "dp_10000000000000000000000", Protocol: 6},
		Steps: []machine.Step{
			{Kind: machine.StepCommand, Type: journal.Output, Payload: make([]byte, 120)},
			{Kind: machine.StepEnd},
		},
	}
}

func typicalInvocation() *machine.Invocation {
	return &machine.Invocation{
		ID: ids.NewInvocation(7, [16]byte{1}), Target: machine.Target{Service: "Greeter", Handler: "greet", Key: "World", Type: target.ObjectExclusive},
		Status: machine.Invoked, IdempotencyKey: new("8a4f7c1e-0000-1111"), Retention: machine.Retention{Completion: 86400000, Journal: 86400000},
		ServerVersion: "1.0.0", CreatedAt: 1700000000000, ModifiedAt: 1700000000000, RunningAt: 1700000000000, ProgressAt: 1700000000000,
		Attempt: 12345, Pin: machine.Pin{Deployment: "dp_10000000000000000000000", Protocol: 6}, Length: 2, Commands: 2, HoldsLock: true,
	}
}

func BenchmarkProgress(b *testing.B) {
	c := typicalProgress()
	encoded, _ := EncodeCommand(feature.Supported(), c)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = EncodeCommand(feature.Supported(), c)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var c machine.Command
			_ = readCommand(encoded, &c)
		}
	})
	var m raftlog.Command
	_ = proto.Unmarshal(encoded, &m)
	b.Run("generated/marshal", func(b *testing.B) { // excludes filling the generated structs
		b.ReportAllocs()
		for b.Loop() {
			_, _ = proto.Marshal(&m)
		}
	})
	b.Run("generated/unmarshal", func(b *testing.B) { // excludes converting from the generated structs
		b.ReportAllocs()
		for b.Loop() {
			var m raftlog.Command
			_ = proto.Unmarshal(encoded, &m)
		}
	})
}

func BenchmarkInvocation(b *testing.B) {
	inv := typicalInvocation()
	encoded := AppendInvocation(nil, inv)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 1024)
		for b.Loop() {
			buf = AppendInvocation(buf[:0], inv)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = DecodeInvocation(encoded)
		}
	})
	b.Run("generated/unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var m raftlog.Invocation
			_ = proto.Unmarshal(encoded, &m)
		}
	})
}

func BenchmarkEntryOf256Commands(b *testing.B) {
	var commands [][]byte
	for range 256 {
		c, _ := EncodeCommand(feature.Supported(), typicalProgress())
		commands = append(commands, c)
	}
	data := Seal(feature.Level1, 1, 1700000000000, commands)
	b.Run("seal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = Seal(feature.Level1, 1, 1700000000000, commands)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, _ = Decode(data)
		}
	})
}
