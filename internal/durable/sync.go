// Package durable makes changes of directories survive a power failure.
package durable

import (
	"errors"
	"os"
)

// SyncDir makes the names of the files in a directory durable.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
