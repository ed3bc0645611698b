package metadata

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"platform/internal/errcode"
	"platform/internal/keyring"
	pb "platform/proto/metadata"
)

// MaxAuthority is the size of the certificate of an authority, and of its key.
const MaxAuthority = 16 << 10

// ErrNoAuthority means that the cluster has no authority that could issue certificates.
var ErrNoAuthority = errors.New("the cluster has no authority for certificates of nodes")

// Authority issues the certificates of nodes. A value is immutable.
type Authority struct {
	Certificate []byte // in DER format
	key         string // in PEM format, encrypted
}

// Hash returns the SHA-256 of the certificate, which identifies the authority.
func (a *Authority) Hash() [sha256.Size]byte { return sha256.Sum256(a.Certificate) }

// place is where the key is stored. It contains the certificate, so that the key cannot be used
// with another one.
func (a *Authority) place() keyring.Place {
	hash := a.Hash()
	return keyring.Place{Kind: authoritySecrets, ID: hex.EncodeToString(hash[:]), Field: "key"}
}

// openKey decrypts the key. The error has code META0020.
func (a *Authority) openKey(keys *keyring.Keyring) (string, error) {
	key, err := keys.Open(a.place(), a.key)
	if err != nil {
		return "", errcode.New(errcode.META0020, "the key of the cluster's authority cannot be decrypted: %w", err)
	}
	return key, nil
}

// putAuthority stores the authority of the cluster.
type putAuthority struct {
	authority Authority
	keep      bool // one that is stored already
}

func (*putAuthority) command() {}

// Authority returns the authority of the cluster; false if there is none.
func (s *Store) Authority() (Authority, bool) {
	if a := s.source.current().authority; a != nil {
		return *a, true
	}
	return Authority{}, false
}

// AuthorityKey returns the authority of the cluster and its key in PEM format. The error is
// ErrNoAuthority or has code META0020: this node does not have the key that it is encrypted with.
func (s *Store) AuthorityKey() (certificate []byte, key string, err error) {
	v := s.source.current()
	if v.authority == nil {
		return nil, "", ErrNoAuthority
	}
	key, err = v.authority.openKey(v.keys)
	return v.authority.Certificate, key, err
}

// PutAuthority stores an authority, whose certificate is in DER and key in PEM format. The key is
// stored only encrypted: without keys of this node the error has code META0020.
func (s *Store) PutAuthority(ctx context.Context, certificate []byte, key string) error {
	return s.putAuthority(ctx, certificate, key, false)
}

// KeepAuthority is PutAuthority unless there is an authority.
func (s *Store) KeepAuthority(ctx context.Context, certificate []byte, key string) error {
	return s.putAuthority(ctx, certificate, key, true)
}

func (s *Store) putAuthority(ctx context.Context, certificate []byte, key string, keep bool) error {
	keys := s.source.current().keys
	if keys == nil {
		return errcode.New(errcode.META0020, "the key of the cluster's authority is stored only encrypted, and this node has no key for that; set security.secrets.key-file (openssl rand -base64 32)")
	}
	a := Authority{Certificate: certificate}
	a.key = keys.Seal(a.place(), key)
	_, err := proposeToAll[any](ctx, s, &putAuthority{a, keep})
	return err
}

// applyPutAuthority returns nothing: results of requests are stored, too.
func applyPutAuthority(d *draft, cmd *putAuthority) (outcome, error) {
	a := cmd.authority
	switch {
	case len(a.Certificate) == 0 || len(a.Certificate) > MaxAuthority || len(a.key) > 2*MaxAuthority:
		return outcome{rejection: &InvalidError{"the certificate of an authority and its key have 1 to 16,384 bytes"}}, nil
	case !keyring.Sealed(a.key):
		return outcome{rejection: &InvalidError{"the key of an authority is stored only encrypted"}}, nil
	case cmd.keep && d.authority != nil:
		return outcome{}, nil
	}
	return outcome{}, d.setAuthority(a)
}

func (d *draft) setAuthority(a Authority) error {
	d.authority = &a
	return d.put(tableAuthority, authorityKey, authorityToProto(&a))
}

// ReadAuthority reads the authority and its key from the metadata in a directory, which must not be
// open, like Store.AuthorityKey.
func ReadAuthority(dir string, keys *keyring.Keyring) (certificate []byte, key string, err error) {
	path := filepath.Join(dir, "state.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, "", ErrNoAuthority
	}
	db, err := openDatabase(path)
	if err != nil {
		return nil, "", err
	}
	st, _, err := db.load()
	if err = errors.Join(err, db.close()); err != nil {
		return nil, "", err
	}
	if st.authority == nil {
		return nil, "", ErrNoAuthority
	}
	key, err = st.authority.openKey(keys)
	return st.authority.Certificate, key, err
}

func authorityToProto(a *Authority) *pb.Authority {
	return &pb.Authority{Certificate: a.Certificate, Key: a.key}
}

func authorityFromProto(a *pb.Authority) *Authority {
	return &Authority{Certificate: a.GetCertificate(), key: a.GetKey()}
}
