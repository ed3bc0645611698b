package codec

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/partition/machine"
)

var update = flag.Bool("update", false, "add golden files for encodings that have none yet")

// Files in testdata are named <kind>.<n>.hex. They are never changed or removed: every
// released encoding must stay readable and be encoded again to the same bytes.
func goldenFiles(t *testing.T, name string) map[string][]byte {
	paths, err := filepath.Glob(filepath.Join("testdata", name+".*.hex"))
	require.NoError(t, err)
	files := make(map[string][]byte)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
		require.NoError(t, err, path)
		files[path] = b
	}
	return files
}

func writeGolden(t *testing.T, name string, n int, b []byte) {
	var text strings.Builder
	for len(b) > 0 {
		line := min(32, len(b))
		fmt.Fprintf(&text, "%x\n", b[:line])
		b = b[line:]
	}
	path := filepath.Join("testdata", fmt.Sprintf("%s.%d.hex", name, n))
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o644))
}

// requirePinned checks that all golden files of a kind round-trip, and that the current
// encoding of a value with all fields is among them.
func requirePinned(t *testing.T, name string, current []byte, recode func([]byte) ([]byte, error)) {
	files := goldenFiles(t, name)
	pinned := false
	for path, b := range files {
		got, err := recode(b)
		require.NoError(t, err, path)
		require.Equal(t, hex.EncodeToString(b), hex.EncodeToString(got), path)
		pinned = pinned || string(b) == string(current)
	}
	if !pinned && *update {
		writeGolden(t, name, len(files)+1, current)
		return
	}
	require.True(t, pinned, "the encoding has changed: if fields were added, run the test with -update to add a golden file; never change an old one")
}

func TestGoldenBytes(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			current, err := k.encode(k.full())
			require.NoError(t, err)
			requirePinned(t, k.name, current, func(b []byte) ([]byte, error) {
				v, err := k.decode(b)
				if err != nil {
					return nil, err
				}
				return k.encode(v)
			})
		})
	}
}

func TestGoldenLogEntry(t *testing.T) {
	var commands [][]byte
	for _, k := range commandKinds {
		b, err := k.encode(k.full())
		require.NoError(t, err)
		commands = append(commands, b)
	}
	requirePinned(t, "log-entry", Seal(feature.Level1, 3, 1700000000000, commands), func(b []byte) ([]byte, error) {
		h, commands, err := Decode(b)
		if err != nil {
			return nil, err
		}
		var encoded [][]byte
		for _, c := range commands {
			b, err := EncodeCommand(feature.Supported(), c)
			if err != nil {
				return nil, err
			}
			encoded = append(encoded, b)
		}
		return Seal(h.Level, h.Epoch, h.Time, encoded), nil
	})
}

// firstReleaseFiles is the number of golden files of each log command that the first release
// wrote.
var firstReleaseFiles = map[string]int{
	"command-acknowledge": 1, "command-deliver": 4, "command-fire-timers": 2, "command-invoke": 4, "command-kill": 1, "command-lead": 2,
	"command-pause": 2, "command-pause-queue": 1, "command-progress": 2, "command-purge": 1, "command-restart": 1, "command-resume": 1,
	"command-set-rules": 1, "command-signal": 2,
}

// Encodings that the first release cannot read require a higher level: see writer.require.
func TestEncodingsAtTheFirstLevelAreReadableByTheFirstRelease(t *testing.T) {
	for _, k := range commandKinds {
		for path, b := range goldenFiles(t, k.name) {
			number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), k.name+"."), ".")
			n, err := strconv.Atoi(number)
			require.NoError(t, err)
			v, err := k.decode(b)
			require.NoError(t, err)
			_, err = EncodeCommand(feature.Level1, v.(machine.Command))
			if n <= firstReleaseFiles[k.name] {
				require.NoError(t, err, path)
				continue
			}
			var levelErr *feature.Error
			require.ErrorAs(t, err, &levelErr, "%s: a new command or field must call writer.require", path)
			require.Equal(t, feature.Level1, levelErr.Level)
			require.NotEmpty(t, levelErr.What)
		}
	}
}

func TestEveryGoldenFileBelongsToAKind(t *testing.T) {
	entries, err := os.ReadDir("testdata")
	require.NoError(t, err)
	known := map[string]bool{"log-entry": true}
	for _, k := range kinds {
		known[k.name] = true
	}
	for _, e := range entries {
		if !e.IsDir() {
			name, _, _ := strings.Cut(e.Name(), ".")
			require.True(t, known[name], e.Name())
		}
	}
}
