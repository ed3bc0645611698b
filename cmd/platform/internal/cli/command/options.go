package command

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

// globals are the options of all commands.
type globals struct {
	verbose, quiet int
	tableStyle     string
	timeFormat     string
	yes            bool
	connect        Timeout
	request        Timeout
	insecure       bool
	caFile         string
	environment    string
	adminURL       string
	ingressURL     string
	watch          bool
	interval       float64 // seconds
}

func (g *globals) bind(flags *pflag.FlagSet) {
	g.connect, g.request = Timeout(3*time.Second), Timeout(13*time.Second)
	flags.SortFlags = false
	flags.CountVarP(&g.verbose, "verbose", "v", "more messages on stderr (repeatable)")
	flags.CountVarP(&g.quiet, "quiet", "q", "fewer messages on stderr (repeatable)")
	flags.BoolVarP(&g.yes, "yes", "y", false, "confirm all questions (also when CI is set)")
	flags.StringVarP(&g.environment, "environment", "e", "", "environment of the configuration file (default: the one chosen by config use-environment, or local)")
	flags.StringVar(&g.adminURL, "admin-url", "", "`address` of the admin API: host:port, a URL or unix:<path> (default 127.0.0.1:9070)")
	flags.StringVar(&g.ingressURL, "ingress-url", "", "`address` of the ingress (default: port 8080 of the host of the admin API)")
	flags.StringVar(&g.tableStyle, "table-style", "compact", "compact or borders")
	flags.StringVar(&g.timeFormat, "time-format", "human", "human, iso8601 or rfc2822")
	flags.BoolVarP(&g.watch, "watch", "w", false, "repeat until Ctrl-C (commands that list or describe)")
	flags.Float64VarP(&g.interval, "interval", "n", 1, "`seconds` between repetitions of --watch")
	flags.Var(&g.connect, "connect-timeout", "time to wait for a connection, as a duration or in milliseconds")
	flags.Var(&g.request, "request-timeout", "time to wait for a response, as a duration or in milliseconds; call and attach wait indefinitely without it")
	flags.StringVar(&g.caFile, "ca-file", "", "`file` with the authorities that certificates of servers are verified with, besides those of the system (variable PLATFORM_CA_FILE)")
	flags.BoolVar(&g.insecure, "insecure-skip-tls-verify", false, "accept any TLS certificate")
}

// Timeout is a duration that may be given as a plain number of milliseconds.
type Timeout time.Duration

// String implements pflag.Value.
func (t *Timeout) String() string { return units.FormatDuration(time.Duration(*t)) }

// Type implements pflag.Value.
func (t *Timeout) Type() string { return "duration" }

// Set implements pflag.Value.
func (t *Timeout) Set(text string) error {
	if ms, err := strconv.ParseUint(text, 10, 31); err == nil {
		text = strconv.FormatUint(ms, 10) + "ms"
	}
	d, err := units.ParseDuration(text)
	if err != nil {
		return err
	}
	if d == 0 {
		return fmt.Errorf("a timeout must be above 0")
	}
	*t = Timeout(d)
	return nil
}

// ChangesLogin marks commands that do not need a valid session.
const ChangesLogin = "changes login"

// WithoutServer is the annotation of commands that use no server, and so work with any configuration.
const WithoutServer = "without-server"

// SetUp checks the options and prepares output and client; it runs before every
// command.
func (a *App) SetUp(cmd *cobra.Command) error {
	borders := a.options.tableStyle == "borders"
	if !borders && a.options.tableStyle != "compact" {
		return fmt.Errorf("%q is not a table style; use compact or borders", a.options.tableStyle)
	}
	if a.options.watch && cmd.Annotations[watchable] == "" {
		return errors.New("--watch applies only to commands that list or describe something")
	}
	if a.options.interval < 0.1 {
		return errors.New("--interval must be at least 0.1 seconds")
	}
	times, err := term.ParseTimeFormat(a.options.timeFormat)
	if err != nil {
		return err
	}
	if ci := a.Getenv("CI"); ci != "" && ci != "false" && ci != "0" {
		a.options.yes = true
	}
	a.Print = term.New(a.Out, a.Getenv, borders, times)
	a.Hint = term.New(a.Err, a.Getenv, borders, times)
	if cmd.Annotations[WithoutServer] != "" {
		return nil
	}
	if a.Profile, err = loadSettings(a.System, &a.options); err != nil {
		return Failed(err)
	}
	if a.authorities, err = loadAuthorities(cmp.Or(a.options.caFile, a.Getenv("PLATFORM_CA_FILE"))); err != nil {
		return Failed(err)
	}
	if cmd.Annotations[ChangesLogin] == "" {
		a.renewSession(cmd.Context())
	}
	a.Client = a.NewClient(a.Profile.Token, a.resultTimeout(cmd))
	return nil
}

// NewClient returns a client of the server in use that sends a token. resultTimeout limits how long a
// call waits for its result; 0 means indefinitely.
func (a *App) NewClient(token string, resultTimeout time.Duration) *client.Client {
	return client.New(client.Options{
		RootCAs:            a.authorities,
		AdminURL:           a.Profile.AdminURL,
		IngressURL:         a.Profile.IngressURL,
		Token:              token,
		ConnectTimeout:     time.Duration(a.options.connect),
		RequestTimeout:     time.Duration(a.options.request),
		ResultTimeout:      resultTimeout,
		InsecureSkipVerify: a.options.insecure,
		Log:                a.logger(),
	})
}

// loadAuthorities returns the authorities of the system and those in a file, nil without one.
func loadAuthorities(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // those of the system
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--ca-file: %s contains no certificate in PEM format", path)
	}
	return pool, nil
}

// resultTimeout is how long call and attach wait for a result: only as long as the user says.
func (a *App) resultTimeout(cmd *cobra.Command) time.Duration {
	if cmd.Flags().Changed("request-timeout") {
		return time.Duration(a.options.request)
	}
	return 0
}

// logger logs warnings and errors to stderr; each -v lowers the level by one, each -q raises it.
func (a *App) logger() *slog.Logger {
	level := slog.LevelWarn - slog.Level(4*a.options.verbose) + slog.Level(4*a.options.quiet)
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
}

// Bind adds the global options to the flags of the root command.
func (a *App) Bind(flags *pflag.FlagSet) { a.options.bind(flags) }

// ConfigFile returns the path of the configuration file, which may not exist.
func (a *App) ConfigFile() string { return configFile(a.System) }

// Environment returns the name of the environment in use.
func (a *App) Environment(file string) (string, error) {
	return environmentOf(a.System, &a.options, file)
}

// Watching reports whether the command is repeated.
func (a *App) Watching() bool { return a.options.watch }

// Confirm requests a confirmation on stderr.
func (a *App) Confirm(question string) error {
	return term.Confirm(a.In, a.Err, question, a.options.yes)
}

// AssumesYes reports whether all questions are answered with yes (--yes).
func (a *App) AssumesYes() bool { return a.options.yes }

// Say writes a note to stderr, unless -q.
func (a *App) Say(format string, args ...any) {
	if a.options.quiet == 0 {
		a.Hint.Printf(format+"\n", args...)
	}
}
