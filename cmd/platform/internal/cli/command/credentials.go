package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"

	"platform/internal/durable"
)

// Credentials are the token of an environment. It is sent only to the addresses that it was
// stored for.
type Credentials struct {
	AdminURL   string `toml:"admin_base_url"`
	IngressURL string `toml:"ingress_base_url"`
	Token      string `toml:"token"`
	// Login is set if the token is that of a session.
	Login *login `toml:"login,omitempty"`
}

// credentialsFile is next to the configuration file, which users edit.
func credentialsFile(configuration string) string {
	return filepath.Join(filepath.Dir(configuration), "credentials.toml")
}

// readCredentials returns the credentials by environment. A file that others can read is
// refused.
func readCredentials(path string) (map[string]Credentials, error) {
	all := map[string]Credentials{}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("other users can read %s, which has tokens; restrict it with chmod 600", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the stored tokens: %w", err)
	}
	if err := toml.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s is not a table of tokens; `platform logout` removes it: %w", path, err)
	}
	return all, nil
}

// writeCredentials replaces the file, or removes it if there are none.
func writeCredentials(path string, all map[string]Credentials) error {
	if len(all) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the stored tokens: %w", err)
		}
		return nil
	}
	data, err := toml.Marshal(all)
	if err != nil {
		return fmt.Errorf("encode the tokens: %w", err)
	}
	if err := durable.ReplaceFile(path, data); err != nil {
		return fmt.Errorf("store the token: %w", err)
	}
	return nil
}

// useStored sets the token of the environment, and its login if it is that of a session, unless they
// were stored for other addresses.
func (s *Settings) useStored() error {
	all, err := readCredentials(credentialsFile(s.File))
	if err != nil {
		return err
	}
	c, stored := all[s.Environment]
	switch {
	case !stored:
	case c.AdminURL == s.AdminURL && c.IngressURL == s.IngressURL:
		s.Token, s.Login = c.Token, c.Login
	default:
		s.OtherLogin = &c
	}
	return nil
}
