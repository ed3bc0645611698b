package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"platform/internal/node/offline"
)

// offlineFlags are those of inspect and repair.
type offlineFlags struct {
	set        *pflag.FlagSet
	dataDir    string
	configFile string
	group      uint32
	partition  uint32
	index      uint64
	from, to   uint64
	limit      int
	table, id  string
	out        string
	yes, json  bool
	help       bool
}

func newOfflineFlags(name string) *offlineFlags {
	f := &offlineFlags{set: pflag.NewFlagSet("platform-server "+name, pflag.ContinueOnError)}
	f.set.SortFlags = false
	f.set.Usage = func() {}
	f.set.StringVar(&f.dataDir, "data-dir", "", "data directory of the node (default base-dir/node-name of the configuration)")
	f.set.StringVar(&f.configFile, "config-file", "", "configuration that names the directory")
	f.set.BoolVarP(&f.help, "help", "h", false, "show this help")
	return f
}

// parse parses the arguments and returns those that are not flags: the words of the command.
func (f *offlineFlags) parse(args []string) ([]string, error) {
	if err := f.set.Parse(args); err != nil {
		if missing, ok := errors.AsType[*pflag.NotExistError](err); ok && slices.Contains([]string{"node-name", "base-dir"}, missing.GetSpecifiedName()) {
			return nil, fmt.Errorf("%w; name the data directory with --data-dir <base-dir>/<node-name>, see %s --help", err, f.set.Name())
		}
		return nil, fmt.Errorf("%w; see %s --help", err, f.set.Name())
	}
	return f.set.Args(), nil
}

// noCommand returns the error for arguments that are no command.
func (f *offlineFlags) noCommand(words []string) error {
	err := fmt.Errorf("%q is no command; see %s --help", strings.Join(words, " "), f.set.Name())
	if len(words) > 0 && strings.ContainsRune(words[0], filepath.Separator) {
		return fmt.Errorf("%w; a data directory is named with --data-dir", err)
	}
	return err
}

// require fails unless all of the flags are set.
func (f *offlineFlags) require(names ...string) error {
	for _, name := range names {
		if !f.set.Changed(name) {
			return fmt.Errorf("--%s is missing; see %s --help", name, f.set.Name())
		}
	}
	return nil
}

// open opens the data directory.
func (f *offlineFlags) open(environ []string, readOnly bool) (*offline.Directory, error) {
	path, err := f.directory(environ)
	if err != nil {
		return nil, err
	}
	return offline.Open(path, readOnly)
}
