package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// KeyBytes is the size of a key.
	KeyBytes = 32
	// maxKeys is the number of keys of a keyring.
	maxKeys = 16
	// idBytes is the size of the ID of a key, before it is encoded.
	idBytes = 8
)

// prefix starts an encrypted secret. No header can contain the first byte.
const prefix = "\x00aes-256-gcm:"

// Place is where a secret is stored. An encrypted secret can be decrypted for its place only: one
// that was moved in the storage is rejected.
type Place struct{ Kind, ID, Field string }

func (p Place) String() string { return p.Field + " of " + p.Kind + " " + p.ID }

// data is authenticated with the secret. Different places have different data.
func (p Place) data() []byte {
	var out []byte
	for _, part := range []string{p.Kind, p.ID, p.Field} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(part)))
		out = append(out, part...)
	}
	return out
}

// Keyring is a list of keys, the newest first. It is immutable.
type Keyring struct{ keys []key }

type key struct {
	id   string
	aead cipher.AEAD
}

// MissingKeyError means that a secret is encrypted with a key that is not in the keyring.
type MissingKeyError struct{ ID string }

func (e *MissingKeyError) Error() string {
	return fmt.Sprintf("it is encrypted with the key %s, which this node does not have (security.secrets)", e.ID)
}

// ErrInvalid means that a secret was changed in the storage, or moved from another place.
var ErrInvalid = errors.New("what is stored is damaged, or belongs to another place")

// Parse returns the keys in a text: one per line or separated by commas, in base64, the newest
// first. Lines that start with # are comments. Errors do not contain keys.
func Parse(text string) (*Keyring, error) {
	k := &Keyring{}
	number := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for word := range strings.SplitSeq(line, ",") {
			if word = strings.TrimSpace(word); word == "" {
				continue
			}
			number++
			secret, err := base64.StdEncoding.DecodeString(word)
			if err != nil || len(secret) != KeyBytes {
				return nil, fmt.Errorf("key %d is not %d bytes in base64, such as the output of openssl rand -base64 %d", number, KeyBytes, KeyBytes)
			}
			if err := k.add(secret); err != nil {
				return nil, fmt.Errorf("key %d %w", number, err)
			}
		}
	}
	switch {
	case number == 0:
		return nil, errors.New("there is no key")
	case number > maxKeys:
		return nil, fmt.Errorf("there are %d keys, at most %d are supported", number, maxKeys)
	}
	return k, nil
}

func (k *Keyring) add(secret []byte) error {
	digest := sha256.Sum256(append([]byte("platform secret key "), secret...))
	id := hex.EncodeToString(digest[:idBytes])
	if k.Has(id) {
		return errors.New("is there twice")
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return err
	}
	k.keys = append(k.keys, key{id, aead})
	return nil
}

// IDs returns the IDs of the keys, the newest first. An ID follows from its key.
func (k *Keyring) IDs() []string {
	if k == nil {
		return nil
	}
	ids := make([]string, len(k.keys))
	for i := range k.keys {
		ids[i] = k.keys[i].id
	}
	return ids
}

// Has reports whether there is a key with an ID.
func (k *Keyring) Has(id string) bool { return slices.Contains(k.IDs(), id) }

// Newest returns the ID of the key that encrypts.
func (k *Keyring) Newest() string { return k.keys[0].id }

// Seal encrypts a secret with the newest key.
func (k *Keyring) Seal(at Place, secret string) string {
	newest := &k.keys[0]
	return prefix + newest.id + ":" + base64.RawStdEncoding.EncodeToString(newest.aead.Seal(nil, nil, []byte(secret), at.data()))
}

// Open decrypts a secret. The error is a *MissingKeyError or ErrInvalid. A nil Keyring has no
// keys.
func (k *Keyring) Open(at Place, sealed string) (string, error) {
	id, ok := KeyOf(sealed)
	if !ok {
		return "", ErrInvalid
	}
	if !k.Has(id) {
		return "", &MissingKeyError{id}
	}
	i := slices.Index(k.IDs(), id)
	text, err := base64.RawStdEncoding.DecodeString(sealed[len(prefix)+len(id)+1:])
	if err != nil {
		return "", ErrInvalid
	}
	secret, err := k.keys[i].aead.Open(nil, nil, text, at.data())
	if err != nil {
		return "", ErrInvalid
	}
	return string(secret), nil
}

// Sealed reports whether a text is an encrypted secret, or pretends to be one.
func Sealed(text string) bool { return strings.HasPrefix(text, prefix) }

// KeyOf returns the ID of the key of an encrypted secret; false if the text is none.
func KeyOf(text string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return "", false
	}
	id, _, ok = strings.Cut(rest, ":")
	return id, ok && len(id) == 2*idBytes
}
