package config

import (
	"regexp"
	"slices"
	"strings"
)

const (
	variablePrefix = "PLATFORM_"
	// formerPrefix is that of servers whose configuration files are accepted.
	formerPrefix = "RESTATE_"
)

// foreign are variables with the prefix of the server that are not configuration keys: the
// configuration file, the token of the administrator, which must not be printed, and those of
// the command line client.
var foreign = []string{
	"CONFIG", "ADMIN_URL", "INGRESS_URL", "HOST", "HOST_SCHEME", "AUTH_TOKEN", "TOKEN", "ADMIN_TOKEN", "ENVIRONMENT",
	"CA_FILE", "CLI_CONFIG_HOME", "CLI_CONFIG", "EDITOR",
}

// serviceLink matches the names, without the prefix, of the variables that Kubernetes and Docker
// define for services whose names begin with "platform".
var serviceLink = regexp.MustCompile(`^(.*_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_.*)?)$`)

// applyEnv applies PLATFORM_ variables. An empty variable counts as unset. A variable that names
// no key is ignored with a warning: unlike a file, the environment is shared with other programs.
func (l *loader) applyEnv(environ []string) {
	for _, pair := range slices.Sorted(slices.Values(environ)) {
		variable, text, _ := strings.Cut(pair, "=")
		name, ours := strings.CutPrefix(variable, variablePrefix)
		if !ours || text == "" || slices.Contains(foreign, name) {
			continue
		}
		path := variablePath(name)
		k, known := l.byPath[path]
		if !known {
			if origin := "environment variable " + variable; l.replaced(origin, path, text) || l.renamed(origin, path, text) {
				continue
			}
			l.unknownVariable(name, text)
			continue
		}
		l.setText(k, "environment variable "+variable, text)
	}
	l.formerVariables(environ)
}

// formerVariables warns of variables with the former prefix that name a key, unless the variable with the
// server's own prefix is set as well. Those of the command line client and of other programs name none.
func (l *loader) formerVariables(environ []string) {
	var names []string
	for _, pair := range slices.Sorted(slices.Values(environ)) {
		variable, text, _ := strings.Cut(pair, "=")
		name, former := strings.CutPrefix(variable, formerPrefix)
		if _, known := l.byPath[variablePath(name)]; former && known && text != "" && lookupEnv(environ, variablePrefix+name) == "" {
			names = append(names, variable)
		}
	}
	if len(names) > 0 {
		l.warnings = append(l.warnings, "ignored environment variables: "+strings.Join(names, ", ")+"; this server reads them with the prefix "+variablePrefix+" instead of "+formerPrefix)
	}
}

// unknownVariable warns of a variable PLATFORM_<name> that names no key.
func (l *loader) unknownVariable(name, text string) {
	if serviceLink.MatchString(name) || strings.Contains(text, "://") && strings.HasSuffix(name, "PORT") {
		return // A warning would appear at every start in such a container.
	}
	advice := "--dump-config prints all keys; unset the variable if it is not meant for the server"
	if near := nearest(variablePath(name), l.keys); near != "" {
		advice = "did you mean " + variableName(near) + "? Rename the variable, or unset it if it is not meant for the server"
	}
	l.warnings = append(l.warnings, "environment variable "+variablePrefix+name+" is ignored: it names no key; "+advice)
}

// applyCommonEnv applies variables that many programs share, such as those of proxies, to keys
// that no file, variable or flag of the server sets.
func (l *loader) applyCommonEnv(environ []string) {
	for name, path := range map[string]string{
		"HTTP_PROXY":      "worker.invoker.http-proxy",
		"NO_PROXY":        "worker.invoker.no-proxy",
		"AWS_EXTERNAL_ID": "worker.invoker.aws-assume-role-external-id",
	} {
		for _, variable := range []string{name, strings.ToLower(name)} {
			text := lookupEnv(environ, variable)
			if text == "" || l.isSet(path) {
				continue
			}
			if name == "HTTP_PROXY" && !strings.Contains(text, "://") {
				text = "http://" + text
			}
			l.setText(l.byPath[path], "environment variable "+variable, text)
		}
	}
}

// variablePath returns the key that the variable PLATFORM_<name> sets.
func variablePath(name string) string {
	if name == "LOG" {
		return "log-filter"
	}
	return kebab(strings.ReplaceAll(name, "__", "."))
}

// variableName returns the variable that sets the key at path.
func variableName(path string) string {
	return variablePrefix + strings.ToUpper(strings.NewReplacer(".", "__", "-", "_").Replace(path))
}

// lookupEnv returns the last value of a variable in environ, "" when there is none.
func lookupEnv(environ []string, variable string) string {
	value := ""
	for _, pair := range environ {
		if text, ok := strings.CutPrefix(pair, variable+"="); ok {
			value = text
		}
	}
	return value
}
