package command

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"platform/internal/durable"
)

// Settings determine the server that the program uses.
type Settings struct {
	Environment string
	File        string // configuration file, whether it exists or not
	FileExists  bool
	AdminURL    string
	IngressURL  string
	Token       string
	Login       *login // set if Token is that of a stored session
	// OtherLogin is set if there are stored credentials, but for other addresses.
	OtherLogin *Credentials
}

// profile is one table of the configuration file.
type profile struct {
	Type       string `toml:"environment_type"`
	AdminURL   string `toml:"admin_base_url"`
	IngressURL string `toml:"ingress_base_url"`
	Token      string `toml:"bearer_token"`
}

const (
	defaultEnvironment = "local"
	DefaultAdminURL    = "http://127.0.0.1:9070/"
	defaultIngressURL  = "http://127.0.0.1:8080/"
)

// loadSettings applies, each over the one before: the defaults, the profile of the
// configuration file, PLATFORM_HOST, the variables for single settings, and the flags.
func loadSettings(system System, flags *globals) (Settings, error) {
	env, file := system.Getenv, configFile(system)
	s := Settings{File: file}
	var err error
	if s.Environment, err = environmentOf(system, flags, file); err != nil {
		return Settings{}, err
	}
	if err := s.applyFile(); err != nil {
		return Settings{}, err
	}
	if host := env("PLATFORM_HOST"); host != "" {
		scheme := cmp.Or(env("PLATFORM_HOST_SCHEME"), "http")
		s.AdminURL = scheme + "://" + host + ":9070/"
		s.IngressURL = scheme + "://" + host + ":8080/"
	}
	s.AdminURL = cmp.Or(flags.adminURL, env("PLATFORM_ADMIN_URL"), s.AdminURL, DefaultAdminURL)
	s.IngressURL = cmp.Or(flags.ingressURL, env("PLATFORM_INGRESS_URL"), s.IngressURL)
	s.Token = cmp.Or(env("PLATFORM_TOKEN"), env("PLATFORM_AUTH_TOKEN"), s.Token)
	if err := completeURL("admin", &s.AdminURL); err != nil {
		return s, err
	}
	s.IngressURL = cmp.Or(s.IngressURL, ingressBeside(s.AdminURL))
	if err := completeURL("ingress", &s.IngressURL); err != nil || s.Token != "" {
		return s, err
	}
	return s, s.useStored()
}

// ingressBeside returns the default address of the ingress: the usual port on the host of the admin
// API. With a fixed host, calls and tokens for another machine would go to a server on this one.
func ingressBeside(adminURL string) string {
	admin, err := url.Parse(adminURL)
	if err != nil || admin.Hostname() == "" { // a Unix socket
		return defaultIngressURL
	}
	return (&url.URL{Scheme: admin.Scheme, Host: net.JoinHostPort(admin.Hostname(), "8080"), Path: "/"}).String()
}

// environmentOf is the name of the environment in use.
func environmentOf(system System, flags *globals, file string) (string, error) {
	if name := cmp.Or(flags.environment, system.Getenv("PLATFORM_ENVIRONMENT")); name != "" {
		return name, nil
	}
	chosen, err := chosenEnvironment(file)
	return cmp.Or(chosen, defaultEnvironment), err
}

// completeURL completes an address, see CompleteAddress. It keeps unix:<path> unchanged.
func completeURL(what string, address *string) error {
	if path, isUnix := strings.CutPrefix(*address, "unix:"); isUnix && path != "" {
		return nil
	}
	full, ok := CompleteAddress(*address)
	if !ok {
		return fmt.Errorf("the %s address %q is not of the form http://host:port/, host:port or unix:<path>", what, *address)
	}
	*address = full
	return nil
}

// CompleteAddress adds the scheme and the host to an address that lacks them: 9080, :9080,
// localhost:9080. ok is false if the result is not an HTTP URL.
func CompleteAddress(address string) (full string, ok bool) {
	full = address
	if _, err := strconv.ParseUint(strings.TrimPrefix(address, ":"), 10, 16); err == nil {
		full = "localhost:" + strings.TrimPrefix(address, ":")
	}
	if !strings.Contains(full, "://") {
		full = "http://" + full
	}
	parsed, err := url.Parse(full)
	return full, err == nil && parsed.Host != "" && !strings.HasSuffix(parsed.Host, ":") && (parsed.Scheme == "http" || parsed.Scheme == "https")
}

func configFile(system System) string {
	if file := system.Getenv("PLATFORM_CLI_CONFIG"); file != "" {
		return file
	}
	if home := system.Getenv("PLATFORM_CLI_CONFIG_HOME"); home != "" {
		return filepath.Join(home, "config.toml")
	}
	dir := filepath.Join(system.Home, ".config", "platform")
	if base := system.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(base) { // relative ones are invalid
		// Previous releases ignored the variable.
		if other := filepath.Join(base, "platform"); exists(other) || !exists(dir) {
			dir = other
		}
	}
	return filepath.Join(dir, "config.toml")
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// ReadProfiles returns the profiles of a configuration file, and whether it exists. A missing file is
// equivalent to one without profiles.
func ReadProfiles(file string) (profiles map[string]profile, found bool, err error) {
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("read configuration file: %w", err)
	}
	found = err == nil
	if err := toml.Unmarshal(data, &profiles); err != nil {
		place := file
		if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := bad.Position()
			place = fmt.Sprintf("%s:%d", file, line)
		}
		return nil, found, fmt.Errorf("%s is not a table of profiles: %w", place, err)
	}
	return profiles, found, nil
}

// EnvironmentNames lists the environments, which always include the default one.
func EnvironmentNames(profiles map[string]profile) []string {
	names := append(slices.Collect(maps.Keys(profiles)), defaultEnvironment)
	slices.Sort(names)
	return slices.Compact(names)
}

// UnknownEnvironment returns the error of an environment that the configuration file does not have.
func UnknownEnvironment(name, file string, found bool, names []string) error {
	table := fmt.Sprintf("a table [%s] with the keys admin_base_url and ingress_base_url. --admin-url and --ingress-url select a server without an environment.", name)
	if !found {
		err := fmt.Errorf("environment %q is not defined: the configuration file %s does not exist", name, file)
		return WithHint(err, "`platform config edit` creates the file; an environment is "+table)
	}
	err := fmt.Errorf("environment %q is not in %s, which has %s", name, file, strings.Join(names, ", "))
	return WithHint(err, "`platform config edit` opens the file; an environment is "+table)
}

// applyFile applies the profile of the environment.
func (s *Settings) applyFile() error {
	profiles, found, err := ReadProfiles(s.File)
	if err != nil {
		return err
	}
	s.FileExists = found
	chosen, known := profiles[s.Environment]
	if !known && s.Environment != defaultEnvironment {
		err := UnknownEnvironment(s.Environment, s.File, found, EnvironmentNames(profiles))
		if environment, _ := chosenEnvironment(s.File); s.Environment == environment {
			err = WithHint(err, "`platform config use-environment` chooses another one.")
		}
		return err
	}
	s.AdminURL = cmp.Or(chosen.AdminURL, s.AdminURL)
	s.IngressURL = cmp.Or(chosen.IngressURL, s.IngressURL)
	s.Token = chosen.Token
	return nil
}

// withDotEnv adds the PLATFORM_ variables of a .env file to the environment, which takes
// precedence. A file that cannot be read is ignored.
func withDotEnv(getenv func(string) string, name string) func(string) string {
	file, err := os.Open(name)
	if err != nil {
		return getenv
	}
	defer file.Close()
	values := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		variable, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export "), "=")
		if ok && strings.HasPrefix(variable, "PLATFORM_") {
			values[strings.TrimSpace(variable)] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return func(variable string) string { return cmp.Or(getenv(variable), values[variable]) }
}

// ChooseEnvironment stores the environment of later commands.
func ChooseEnvironment(configuration, name string) error {
	unlock, err := lockFiles(configuration)
	if err != nil {
		return err
	}
	defer unlock()
	return durable.ReplaceFile(environmentFile(configuration), []byte(name+"\n"))
}

// environmentFile contains the name of the environment that config use-environment has chosen. It is
// named after the configuration file, which may be in a directory with files of others, such as
// /etc/environment.
func environmentFile(configuration string) string {
	return strings.TrimSuffix(configuration, ".toml") + ".environment"
}

// chosenEnvironment is that environment; "" if there is none.
func chosenEnvironment(configuration string) (string, error) {
	name, err := os.ReadFile(environmentFile(configuration))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the environment that config use-environment has chosen: %w", err)
	}
	return strings.TrimSpace(string(name)), nil
}
