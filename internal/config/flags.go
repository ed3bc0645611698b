package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"platform/internal/suggest"
)

// Options are the flags that are not configuration keys.
type Options struct {
	ConfigFile string // from the flag or PLATFORM_CONFIG, "" if not set
	DumpConfig bool   // print the configuration and exit
	Production bool   // provision a new cluster only on request
	NoLogo     bool   // do not print the banner
	Version    bool   // print the version and exit
	Help       bool   // print the help and exit
}

// keyFlag collects the text of a key; the loader applies it after the file and the environment.
type keyFlag struct {
	key  key
	text string
}

func (f *keyFlag) String() string { return f.text }

func (f *keyFlag) Set(text string) error {
	f.text = text
	return nil
}

func (f *keyFlag) Type() string {
	switch f.key.value.Kind() {
	case reflect.Bool:
		return "bool"
	case reflect.Int:
		return "number"
	}
	if strings.HasPrefix(expected(f.key.value.Type()), "a duration") {
		return "duration"
	}
	return "text"
}

// commandLine returns a flag set with the options and one flag for each key
// outside the sections.
func commandLine(options *Options, list []key) *pflag.FlagSet {
	flags := pflag.NewFlagSet("platform-server", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() {}
	flags.StringVarP(&options.ConfigFile, "config-file", "c", "", "configuration file (TOML)")
	flags.BoolVar(&options.DumpConfig, "dump-config", false, "print the configuration in effect and exit")
	flags.BoolVar(&options.Production, "production", false, "turn auto-provision off")
	flags.BoolVar(&options.NoLogo, "no-logo", false, "do not print the banner")
	flags.BoolVarP(&options.Version, "version", "V", false, "print the version and exit")
	flags.BoolVarP(&options.Help, "help", "h", false, "print this help and exit")
	for _, k := range list {
		if !k.root() || k.section() {
			continue
		}
		flag := flags.VarPF(&keyFlag{key: k}, k.path, "", k.help)
		if k.value.Kind() == reflect.Bool {
			flag.NoOptDefVal = "true"
		}
		if text, set := textOf(k.value); set && text != "" && text != "false" {
			flag.DefValue = text
		}
	}
	return flags
}

// commands are the commands of the server's program, see Usage.
var commands = []string{"health", "inspect", "repair", "recover"}

// parseFlags reads the command line without applying it.
func (l *loader) parseFlags(args []string) (*pflag.FlagSet, Options) {
	var options Options
	flags := commandLine(&options, l.keys)
	if err := flags.Parse(args); err != nil {
		l.problem("command line", "", flagProblem(err, flags, l.keys))
	} else if flags.NArg() > 0 {
		hint := "--help lists commands and flags"
		switch value := flags.Arg(0); {
		case slices.Contains(commands, value):
			hint = "the command comes first: platform-server " + value + " [flags]"
		case value == "true" || value == "false":
			hint = "a switch has its value after =, such as --auto-provision=" + value
		default:
			if near := suggest.Nearest(value, commands); near != "" {
				hint = "did you mean " + near + "?"
			}
		}
		l.problem("command line", "", fmt.Sprintf("unexpected argument %q; %s", flags.Arg(0), hint))
	}
	return flags, options
}

// flagForm is a name as it would be written as a flag.
func flagForm(name string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(name) }

func flagProblem(err error, flags *pflag.FlagSet, list []key) string {
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err.Error()
	}
	for _, k := range list {
		if !k.root() && !k.section() && flagForm(k.path) == flagForm(missing.GetSpecifiedName()) {
			return fmt.Sprintf("%s; keys of sections have no flag: set %s in the configuration file, or the variable %s", err, k.path, k.variable())
		}
	}
	var known []key
	flags.VisitAll(func(f *pflag.Flag) { known = append(known, key{path: f.Name}) })
	if near := nearest(missing.GetSpecifiedName(), known); near != "" {
		return fmt.Sprintf("%s; did you mean --%s?", err, near)
	}
	return err.Error() + "; --help lists all flags"
}

// applyFlags applies the flags that were given.
func (l *loader) applyFlags(flags *pflag.FlagSet) {
	flags.Visit(func(f *pflag.Flag) {
		if given, ok := f.Value.(*keyFlag); ok {
			l.setText(given.key, "flag --"+f.Name, given.text)
		}
	})
}

// Usage returns the help of the server's command line.
func Usage() string {
	var options Options
	flags := commandLine(&options, keys(Default()))
	return "Runs a server.\n\nUsage: platform-server [flags]\n       platform-server health    check whether the server on this machine is ready\n       platform-server inspect   show the data directory of a node that is stopped\n       platform-server repair    repair it: drop a log entry, end a quarantine, accept lost entries\n       platform-server recover   recover a cluster whose other nodes are lost for good\n\nFlags:\n" + flags.FlagUsagesWrapped(110) +
		"\nEvery key, including those in sections, can be set in the configuration file and in the environment:\n" +
		"worker.invoker.abort-timeout is PLATFORM_WORKER__INVOKER__ABORT_TIMEOUT. --dump-config prints all keys.\n" +
		"\nExit status: 0 stopped in order; 1 failed, see the last line; 3 the cluster needs a newer release of this\n" +
		"server; 4 this node was removed from the cluster. Starting it again is of no use after 3 and 4.\n"
}
