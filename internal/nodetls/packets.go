package nodetls

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"platform/internal/certs"
)

// packetKeyBytes is the size of a packet key.
const packetKeyBytes = 32

// packetKeys are the keys of gossip packets, read from a file with one key per line in
// base64. The first one encrypts, and all decrypt, so that keys can be replaced node by node.
type packetKeys struct {
	path    string
	ciphers atomic.Pointer[[]cipher.AEAD]
	text    []byte // read last; used by run only
}

func openPacketKeys(path string) (*packetKeys, error) {
	k := &packetKeys{path: path}
	return k, k.read()
}

func (k *packetKeys) read() error {
	if err := certs.CheckPermissions(k.path); err != nil {
		return err
	}
	text, err := os.ReadFile(k.path)
	if err != nil || bytes.Equal(text, k.text) {
		return err
	}
	var ciphers []cipher.AEAD
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(string(line))
		if err != nil || len(key) != packetKeyBytes {
			return fmt.Errorf("%s: each line must be a key of %d bytes in base64", k.path, packetKeyBytes)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return err
		}
		ciphers = append(ciphers, aead)
	}
	if len(ciphers) == 0 {
		return errors.New(k.path + " contains no key")
	}
	k.text = text
	k.ciphers.Store(&ciphers)
	return nil
}

// run reads a changed file again, until ctx ends.
func (k *packetKeys) run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	failed := ""
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		switch err := k.read(); {
		case err == nil:
			failed = ""
		case err.Error() != failed:
			failed = err.Error()
			log.Error("packet key not reloaded, the previous one remains in use", "err", err)
		}
	}
}

// SealsPackets reports whether this node has a key for packets.
func (s *Security) SealsPackets() bool { return s != nil && s.packets != nil }

// SealPacket appends an encrypted packet to b, which it authenticates as well.
func (s *Security) SealPacket(b, payload []byte) []byte {
	aead := (*s.packets.ciphers.Load())[0]
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return aead.Seal(append(bytes.Clone(b), nonce...), nonce, payload, b)
}

// OpenPacket decrypts what follows a header of a packet; ok is false unless a node of the
// cluster has sent it.
func (s *Security) OpenPacket(header, sealed []byte) (payload []byte, ok bool) {
	for _, aead := range *s.packets.ciphers.Load() {
		n := aead.NonceSize()
		if len(sealed) < n {
			return nil, false
		}
		if payload, err := aead.Open(nil, sealed[:n], sealed[n:], header); err == nil {
			return payload, true
		}
	}
	return nil, false
}
