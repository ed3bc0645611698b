package node

import (
	"log/slog"

	"platform/internal/certs"
	"platform/internal/config"
	"platform/internal/errcode"
	signing "platform/invoker/identity" // this package has an identity of its own
)

// newSigner reads the key that signs requests to endpoints; nil if none is configured. Services are configured with the public key that it logs.
func newSigner(cfg *config.Config, log *slog.Logger) (*signing.Signer, error) {
	c := &cfg.Worker.Invoker
	if c.RequestIdentityPrivateKeyPEMFile == "" {
		return nil, nil
	}
	signer, err := signing.Load(c.RequestIdentityPrivateKeyPEMFile, c.RequestIdentityExpiration.Std())
	if err != nil {
		return nil, errcode.New(errcode.RT0002, "configuration: worker.invoker.request-identity-private-key-pem-file: %w", err)
	}
	if err := certs.CheckKeyFile(c.RequestIdentityPrivateKeyPEMFile, "worker.invoker.request-identity-private-key-pem-file", cfg.Security.Mode == config.SecurityOpen, log); err != nil {
		return nil, errcode.New(errcode.RT0002, "configuration: %w", err)
	}
	log.Info("requests to services are signed", "public_key", signer.KeyID())
	return signer, nil
}
