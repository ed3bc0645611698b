package config

import (
	"slices"
	"strings"
)

const variablePrefix = "PLATFORM_"

// foreign are variables with our prefix that are not configuration keys: the
// configuration file and those of the command line client.
var foreign = []string{
	"CONFIG", "ADMIN_URL", "INGRESS_URL", "HOST", "HOST_SCHEME", "AUTH_TOKEN", "ENVIRONMENT",
	"CLI_CONFIG_HOME", "CLI_CONFIG", "EDITOR",
}

// applyEnv applies PLATFORM_ variables. An empty variable counts as unset. A
// variable that names no key is only a warning: container platforms put variables
// of their own (service addresses) under a prefix they do not ask about.
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
			l.warnings = append(l.warnings, "environment variable "+variable+" is ignored: "+unknown(path, l.keys))
			continue
		}
		l.setText(k, "environment variable "+variable, text)
	}
}

// applyCommonEnv applies variables that many programs share, such as those of proxies, where
// neither file nor variable nor flag of ours says otherwise.
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

// variablePath returns the key that the variable PLATFORM_<name> stands for.
func variablePath(name string) string {
	if name == "LOG" {
		return "log-filter"
	}
	return kebab(strings.ReplaceAll(name, "__", "."))
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
