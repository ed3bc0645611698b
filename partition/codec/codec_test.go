package codec

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/internal/feature"
	"platform/partition/journal"
	"platform/partition/machine"
)

func TestAllFieldsRoundTrip(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			v := k.full()
			requireNoZero(t, k.name, reflect.ValueOf(v).Elem(), 0)
			b, err := k.encode(v)
			require.NoError(t, err)
			got, err := k.decode(b)
			require.NoError(t, err)
			require.Equal(t, v, got)
		})
	}
}

// requireNoZero fails if fill has left a field at its zero value.
func requireNoZero(t *testing.T, path string, v reflect.Value, depth int) {
	t.Helper()
	if v.Type() == reflect.TypeFor[[]journal.Future]() && depth > 2 {
		return
	}
	require.False(t, v.IsZero(), path)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			requireNoZero(t, path+"."+v.Type().Field(i).Name, v.Field(i), depth)
		}
	case reflect.Pointer:
		requireNoZero(t, path, v.Elem(), depth)
	case reflect.Slice:
		requireNoZero(t, path, v.Index(0), depth+1)
	}
}

func TestRandomValuesRoundTrip(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v := k.draw(t, false)
				b, err := k.encode(v)
				require.NoError(t, err)
				got, err := k.decode(b)
				require.NoError(t, err)
				require.Equal(t, v, got)
			})
		})
	}
}

func TestLogEntryKeepsCommandsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := machine.Header{Level: feature.Level(rapid.Uint32Range(1, uint32(feature.Supported())).Draw(t, "level")), Epoch: rapid.Uint64().Draw(t, "epoch"), Time: rapid.Int64().Draw(t, "time")}
		var commands []machine.Command
		var encoded [][]byte
		for range rapid.IntRange(0, 5).Draw(t, "commands") {
			k := commandKinds[rapid.IntRange(0, len(commandKinds)-1).Draw(t, "kind")]
			c := k.draw(t, false).(machine.Command)
			b, err := EncodeCommand(feature.Supported(), c)
			require.NoError(t, err)
			commands, encoded = append(commands, c), append(encoded, b)
		}
		gotHeader, got, err := Decode(Seal(h.Level, h.Epoch, h.Time, encoded))
		require.NoError(t, err)
		require.Equal(t, h, gotHeader)
		require.Equal(t, commands, got)
	})
}

func TestWriterRecordsTheHighestRequiredLevel(t *testing.T) {
	w := writer{}
	w.require(feature.Level2, "a new field")
	w.require(feature.Level1, "an old field")
	require.Equal(t, feature.Level2, w.needs)
	require.Equal(t, "a new field", w.neededBy)
}

// Nodes apply a journal command only if they know its type. Those of the first release know the
// codes up to CompleteAwakeable.
func TestNewJournalCommandsRequireAFeatureLevel(t *testing.T) {
	const unassigned = journal.Type(0x040F)
	for _, typ := range journal.Types() {
		if !typ.IsCommand() {
			continue
		}
		_, err := EncodeCommand(feature.Level1, &machine.Progress{Steps: []machine.Step{{Kind: machine.StepCommand, Type: typ}}})
		if typ <= journal.CompleteAwakeable && typ != unassigned {
			require.NoError(t, err, "%s", typ)
		} else {
			require.Error(t, err, "writer.step must require a feature level for the journal command %s", typ)
		}
	}
}

func TestDecodeRejectsMalformedInput(t *testing.T) {
	lead, err := EncodeCommand(feature.Supported(), &machine.Lead{Epoch: 1})
	require.NoError(t, err)
	good := Seal(feature.Level1, 1, 1, [][]byte{lead})
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty input":                   {nil, ErrVersion},
		"newer version":                 {append([]byte{1 << 3, byte(feature.Supported()) + 1}, good[2:]...), ErrVersion},
		"two-byte version":              {append([]byte{1 << 3, 0x81, 1}, good[2:]...), ErrVersion},
		"five-byte version":             {append([]byte{1 << 3, 0xff, 0xff, 0xff, 0xff, 0x7f}, good[2:]...), ErrMalformed},
		"version missing":               {good[2:], ErrVersion},
		"unknown command":               {Seal(feature.Level1, 1, 1, [][]byte{{99<<3&0x7f | 2 | 0x80, 99 >> 4, 0}}), ErrUnknownCommand},
		"unknown field of the entry":    {append(append([]byte{}, good...), 15<<3, 1), ErrMalformed},
		"truncated":                     {good[:len(good)-1], ErrMalformed},
		"command with two kinds":        {Seal(feature.Level1, 1, 1, [][]byte{append(append([]byte{}, lead...), lead...)}), ErrMalformed},
		"unknown field of a command":    {Seal(feature.Level1, 1, 1, [][]byte{{fieldCommandLead<<3 | 2, 2, 9 << 3, 1}}), ErrMalformed},
		"two-byte ID":                   {Seal(feature.Level1, 1, 1, [][]byte{{fieldCommandInvoke<<3 | 2, 4, 1<<3 | 2, 2, 7, 7}}), ErrMalformed},
		"one-byte target of a signal":   {Seal(feature.Level1, 1, 1, [][]byte{{fieldCommandSignal<<3 | 2, 3, 1<<3 | 2, 1, 7}}), ErrMalformed},
		"protocol version out of range": {Seal(feature.Level1, 1, 1, [][]byte{{fieldCommandRestart<<3 | 2, 5, 5<<3 | 2, 3, 2 << 3, 0x80, 2}}), ErrMalformed},
		"unknown field of a kill":       {Seal(feature.Level1, 1, 1, [][]byte{{fieldCommandKill<<3 | 2, 2, 2 << 3, 1}}), ErrMalformed},
		"message with two kinds":        {Seal(feature.Level1, 1, 1, [][]byte{{fieldCommandDeliver<<3 | 2, 6, 3<<3 | 2, 4, fieldMessageKill<<3 | 2, 0, fieldMessageKill<<3 | 2, 0}}), ErrMalformed},
		"unknown message":               {Seal(feature.Level1, 1, 1, [][]byte{{fieldCommandDeliver<<3 | 2, 4, 3<<3 | 2, 2, 9<<3 | 2, 0}}), ErrMalformed},
		"number out of range":           {Seal(feature.Level1, 1, 1, [][]byte{{fieldCommandAcknowledge<<3 | 2, 7, 1 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 1}}), ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Decode(c.data)
			require.ErrorIs(t, err, c.want)
		})
	}
}

func TestDecodedValuesAliasTheInput(t *testing.T) {
	b := AppendEntry(nil, &journal.Entry{Type: journal.Output, Payload: []byte("abc")})
	e, err := DecodeEntry(b)
	require.NoError(t, err)
	require.Same(t, &b[len(b)-3], &e.Payload[0])
}
