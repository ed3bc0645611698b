package enroll

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"platform/internal/certs"
	"platform/internal/keyring"
)

// founderFile contains the authority of a new cluster until it is in the metadata.
const founderFile = "node-tls-authority"

// authorityValidity is the validity of the authority that the first node creates.
const authorityValidity = 10 * 365 * 24 * time.Hour

// depositDelay is the delay after the authority could not be stored in the metadata.
const depositDelay = time.Second

// founded is the content of founderFile.
type founded struct {
	Certificate []byte `json:"certificate"` // in DER format
	Key         string `json:"key"`         // in PEM format, encrypted
}

func (f *founded) place() keyring.Place {
	hash := sha256.Sum256(f.Certificate)
	return keyring.Place{Kind: "authority of a new cluster", ID: hex.EncodeToString(hash[:]), Field: "key"}
}

// found creates the authority of a new cluster.
func (f *Files) found(keys *keyring.Keyring) (*certs.Authority, error) {
	a, err := certs.NewAuthority(f.cluster, authorityValidity)
	if err != nil {
		return nil, err
	}
	key, err := a.KeyPEM()
	if err != nil {
		return nil, err
	}
	content := founded{Certificate: a.Cert.Raw}
	content.Key = keys.Seal(content.place(), string(key))
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return a, f.dir.ReplaceFile(founderFile, text)
}

// founded returns the authority of a new cluster, nil if this node has created none or the metadata
// has it already. The key is in PEM format.
func (f *Files) founded(keys *keyring.Keyring) (certificate []byte, key string, err error) {
	text, err := os.ReadFile(f.dir.In(founderFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	var content founded
	if err == nil {
		err = json.Unmarshal(text, &content)
	}
	if err == nil {
		key, err = keys.Open(content.place(), content.Key)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", f.dir.In(founderFile), err)
	}
	return content.Certificate, key, nil
}

// Depositor stores the authority that this node has created in the metadata.
type Depositor struct {
	Files *Files
	Keys  *keyring.Keyring
	// Put stores an authority unless there is one.
	Put func(ctx context.Context, certificate []byte, key string) error
	Log *slog.Logger
}

// Run returns when there is nothing left to store, or when ctx ends.
func (d *Depositor) Run(ctx context.Context) error {
	for logged := ""; ; {
		certificate, key, err := d.Files.founded(d.Keys)
		if err == nil && certificate == nil {
			return nil
		}
		if err == nil {
			err = d.Put(ctx, certificate, key)
		}
		if err == nil {
			err = os.Remove(d.Files.dir.In(founderFile))
		}
		if err == nil {
			d.Log.Info("authority of the cluster stored in the metadata, encrypted")
			return nil
		}
		if text := err.Error(); ctx.Err() == nil && text != logged {
			logged = text
			d.Log.Warn("authority of the cluster not stored in the metadata yet, retrying", "err", err)
		}
		select {
		case <-time.After(depositDelay):
		case <-ctx.Done():
			return nil
		}
	}
}
