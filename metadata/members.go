package metadata

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// CountMembers is how many nodes the cluster has according to the metadata in a
// directory, which must not be open; 0 if there are none.
func CountMembers(dir string) (members int, err error) {
	path := filepath.Join(dir, "state.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	db, err := openDatabase(path)
	if err != nil {
		return 0, err
	}
	st, _, err := db.load()
	if err == nil {
		members = len(st.members())
	}
	return members, errors.Join(err, db.close())
}
