package cli

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
	connect        timeout
	request        timeout
	insecure       bool
	caFile         string
	environment    string
	adminURL       string
	ingressURL     string
	watch          bool
	interval       float64 // seconds
}

func (g *globals) bind(flags *pflag.FlagSet) {
	g.connect, g.request = timeout(3*time.Second), timeout(13*time.Second)
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

// timeout is a duration that may be given as a plain number of milliseconds.
type timeout time.Duration

func (t *timeout) String() string { return units.FormatDuration(time.Duration(*t)) }
func (t *timeout) Type() string   { return "duration" }

func (t *timeout) Set(text string) error {
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
	*t = timeout(d)
	return nil
}

// setUp checks the options and prepares output and client; it runs before every
// command.
func (a *app) setUp(cmd *cobra.Command) error {
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
	a.print = term.New(a.Out, a.Getenv, borders, times)
	a.hint = term.New(a.Err, a.Getenv, borders, times)
	if cmd.Annotations[withoutServer] != "" {
		return nil
	}
	if a.profile, err = loadSettings(a.System, &a.options); err != nil {
		return &failure{err}
	}
	if a.authorities, err = loadAuthorities(cmp.Or(a.options.caFile, a.Getenv("PLATFORM_CA_FILE"))); err != nil {
		return &failure{err}
	}
	if cmd.Annotations[changesLogin] == "" {
		a.renewSession(cmd.Context())
	}
	a.client = a.newClient(a.profile.Token, a.resultTimeout(cmd))
	return nil
}

func (a *app) newClient(token string, resultTimeout time.Duration) *client.Client {
	return client.New(client.Options{
		RootCAs:            a.authorities,
		AdminURL:           a.profile.AdminURL,
		IngressURL:         a.profile.IngressURL,
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
func (a *app) resultTimeout(cmd *cobra.Command) time.Duration {
	if cmd.Flags().Changed("request-timeout") {
		return time.Duration(a.options.request)
	}
	return 0
}

// logger logs warnings and errors to stderr; each -v lowers the level by one, each -q raises it.
func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn - slog.Level(4*a.options.verbose) + slog.Level(4*a.options.quiet)
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
}

// confirm requests a confirmation on stderr.
func (a *app) confirm(question string) error {
	return term.Confirm(a.In, a.Err, question, a.options.yes)
}

// say writes a note to stderr, unless -q.
func (a *app) say(format string, args ...any) {
	if a.options.quiet == 0 {
		a.hint.Printf(format+"\n", args...)
	}
}

func orDash(text string) string { return cmp.Or(text, "-") }
