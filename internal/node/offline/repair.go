package offline

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"platform/internal/durable"
)

// DropEntry exports a command that has not been applied to a new file and replaces it by an
// entry without effect. This ends a quarantine caused by the entry.
func (d *Directory) DropEntry(group uint32, index uint64, file string) (released bool, err error) {
	if group == MetadataGroup {
		return false, errors.New("entries of the metadata cannot be dropped")
	}
	if err := d.checkGroup(group); err != nil {
		return false, err
	}
	g := d.group(group)
	switch {
	case g.First == 0 || index < g.First || index > g.Last:
		return false, fmt.Errorf("the log of group %d has no entry %d; it has %d to %d", group, index, g.First, g.Last)
	case index <= g.Applied:
		return false, fmt.Errorf("entry %d of group %d is applied already (the tables are at %d); dropping it would change nothing", index, group, g.Applied)
	}
	s, err := d.storage(group)
	if err != nil {
		return false, err
	}
	e := readEntry(s, group, index, math.MaxInt)
	if e.Type != "LogCommand" {
		if e.Error != "" {
			return false, fmt.Errorf("entry %d of group %d cannot be read, so its term is unknown: %s; rebuild this replica from the others instead", index, group, e.Error)
		}
		return false, fmt.Errorf("entry %d of group %d is a %s; only commands can be dropped", index, group, e.Type)
	}
	if err := writeNew(file, e); err != nil {
		return false, err
	}
	if err := d.logs.ReplaceByNoop(group, index); err != nil {
		return false, err
	}
	if !strings.Contains(g.Quarantine, fmt.Sprintf("entry %d ", index)) {
		return false, nil
	}
	return true, d.logs.Release(group)
}

// writeNew durably writes a value as JSON to a new file.
func writeNew(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("export entry: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("export entry: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("export entry: %w", err)
	}
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("export entry: %w", err)
	}
	return nil
}

// Release removes the quarantine mark of a group and returns the reason in it.
func (d *Directory) Release(group uint32) (reason string, err error) {
	if err := d.checkGroup(group); err != nil {
		return "", err
	}
	g := d.group(group)
	if g.Quarantine == "" {
		return "", fmt.Errorf("group %d is not in quarantine", group)
	}
	if group == MetadataGroup {
		return "", errors.New("the quarantine of the metadata cannot be ended here")
	}
	return g.Quarantine, d.logs.Release(group)
}
