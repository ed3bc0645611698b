package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"platform/internal/certs"
	"platform/internal/config"
	"platform/internal/errcode"
	"platform/internal/keyring"
	"platform/metadata"
)

// secretKeys are the keys of this node for the secrets in the metadata.
type secretKeys struct {
	path    string           // "": they come from the configuration
	keys    *keyring.Keyring // nil: none
	text    string           // of the file, read last
	failure string           // the last one, which was logged
}

// secretKeysInterval is the interval at which the file is read.
const secretKeysInterval = time.Second

// openSecretKeys reads the keys that are configured.
func openSecretKeys(cfg *config.Config, log *slog.Logger) (*secretKeys, error) {
	c := &cfg.Security.Secrets
	k := &secretKeys{path: c.KeyFile, text: c.Keys}
	if k.path == "" && k.text == "" {
		return k, nil
	}
	key, err := "security.secrets.keys", error(nil)
	if k.path != "" {
		key = "security.secrets.key-file"
		if k.text, err = readSecretKeys(k.path); err == nil {
			certs.WarnOfGroup(k.path, key, log)
		}
	}
	if err == nil {
		k.keys, err = keyring.Parse(k.text)
	}
	if err != nil {
		return nil, errcode.New(errcode.RT0002, "%s: %w", key, err)
	}
	return k, nil
}

func readSecretKeys(path string) (string, error) {
	if err := certs.CheckPermissions(path); err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// report logs what operators should know about the secrets of the metadata at start.
func (k *secretKeys) report(secrets metadata.SecretsState, log *slog.Logger) {
	switch {
	case len(secrets.Unreadable) > 0:
		log.Error("secrets cannot be decrypted, and are not used; see platform cluster secrets status", "secrets", len(secrets.Unreadable), "first", secrets.Unreadable[0])
	case k.keys != nil && secrets.Clear > 0:
		log.Warn("secrets of the metadata are not encrypted; run platform cluster secrets rotate", "secrets", secrets.Clear)
	case k.keys != nil:
		log.Info("secrets of the metadata are encrypted", "newest_key", k.keys.Newest())
	}
}

// run reads the file again when it changes, until ctx ends.
func (k *secretKeys) run(ctx context.Context, store *metadata.Store, log *slog.Logger) error {
	if k.path == "" {
		return nil
	}
	tick := time.NewTicker(secretKeysInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		err := k.reload(store, log)
		if err == nil {
			k.failure = ""
		} else if k.failure != err.Error() {
			k.failure = err.Error()
			log.Error("keys of secrets not reloaded, the previous ones remain in use", "file", k.path, "err", err)
		}
	}
}

// reload reads the file and uses its keys if it has changed.
func (k *secretKeys) reload(store *metadata.Store, log *slog.Logger) error {
	text, err := readSecretKeys(k.path)
	if err != nil || text == k.text {
		return err
	}
	keys, err := keyring.Parse(text)
	if err != nil {
		return err
	}
	if err := store.SetSecretKeys(keys); err != nil {
		return errors.New(err.Error() + " (until then this node keeps the key in memory)")
	}
	k.keys, k.text = keys, text
	log.Info("keys of secrets reloaded", "keys", keys.IDs())
	k.report(store.Secrets(), log)
	return nil
}
