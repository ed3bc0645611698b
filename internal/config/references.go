package config

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"platform/internal/certs"
	"platform/internal/subscription"
)

// maxSecretBytes limits the size of referenced files.
const maxSecretBytes = 64 << 10

// resolveReferences replaces env:NAME and file:/path in keys for secrets by the value of the variable
// or the content of the file, so that the configuration need not contain secrets.
func (l *loader) resolveReferences(environ []string) {
	for _, path := range append(slices.Clone(secret), "worker.invoker.http-proxy") {
		switch v := l.byPath[path].value; value := v.Addr().Interface().(type) {
		case *string:
			*value = l.resolved(path, *value, environ)
		case *map[string]string:
			for name, text := range *value {
				(*value)[name] = l.resolved(path+"."+name, text, environ)
			}
		}
	}
	for i := range l.cfg.Ingress.KafkaClusters {
		c := &l.cfg.Ingress.KafkaClusters[i]
		for name, text := range c.Properties {
			if subscription.Secret(name) {
				c.Properties[name] = l.resolved("ingress.kafka-clusters."+c.Name+"."+name, text, environ)
			}
		}
	}
}

// resolved returns the value that a text refers to, or the text itself if it is not a reference.
func (l *loader) resolved(path, text string, environ []string) string {
	var err error
	if name, ok := strings.CutPrefix(text, "env:"); ok {
		value := lookupEnv(environ, name)
		if value == "" {
			err = fmt.Errorf("environment variable %s is not set", name)
		}
		text = value
	} else if name, ok := strings.CutPrefix(text, "file:"); ok {
		text, err = secretFile(name)
	}
	if err != nil {
		l.problem(l.origins[path], path, err.Error())
	}
	return text
}

// secretFile reads a file, which must not be readable for every user, without the trailing newline.
func secretFile(path string) (string, error) {
	if err := certs.CheckPermissions(path); err != nil {
		return "", err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSecretBytes+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxSecretBytes:
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxSecretBytes)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
