package certs

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
)

// CheckPermissions returns an error for a file with a secret that every user of the machine
// can read. Its group may: that is how Kubernetes mounts secrets for a process that is not root.
// Pipes and devices have no content to protect.
func CheckPermissions(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New(path + " is a directory")
	case info.Mode().IsRegular() && info.Mode().Perm()&0o007 != 0:
		return fmt.Errorf("every user of this machine has access to %s (mode %04o); run chmod 600 %s", path, info.Mode().Perm(), path)
	}
	return nil
}

// CheckKeyFile is CheckPermissions for a file that earlier releases read whatever its permissions
// are: if open, the server runs with security.mode "open" and only logs a warning.
func CheckKeyFile(path, setting string, open bool, log *slog.Logger) error {
	err := CheckPermissions(path)
	switch {
	case err != nil && open:
		log.Warn("key file is not protected", "setting", setting, "err", err)
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", setting, err)
	}
	WarnOfGroup(path, setting, log)
	return nil
}

// WarnOfGroup logs that the group of a file with a secret can read it, unless the process needs
// that, since the file belongs to another user.
func WarnOfGroup(path, setting string, log *slog.Logger) {
	info, err := os.Stat(path)
	if err != nil || !groupIsSuperfluous(info, os.Geteuid()) {
		return
	}
	log.Warn("the group of a key file has access to it; unless it must, run chmod 600", "setting", setting, "file", path, "mode", fmt.Sprintf("%04o", info.Mode().Perm()))
}

// groupIsSuperfluous reports whether the group has access to a file that a user can read as its owner.
func groupIsSuperfluous(info os.FileInfo, user int) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == user && info.Mode().IsRegular() && info.Mode().Perm()&0o070 != 0
}
