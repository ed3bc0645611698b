package metadata

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/keyring"
)

func fullAuthority() Authority { return Authority{[]byte("certificate"), "key"} }

func TestAuthorityIsStoredEncrypted(t *testing.T) {
	m := atLevel4(t)
	_, _, err := m.AuthorityKey()
	require.ErrorIs(t, err, ErrNoAuthority)
	require.ErrorContains(t, m.PutAuthority(t.Context(), []byte("one"), canary), "security.secrets.key-file")
	m.useKeys(testKeys(t, "a"))
	require.NoError(t, m.KeepAuthority(t.Context(), []byte("one"), canary))
	require.NoError(t, m.KeepAuthority(t.Context(), []byte("two"), canary))
	certificate, key, err := m.AuthorityKey()
	require.NoError(t, err)
	require.Equal(t, "one", string(certificate), "the first one is kept")
	require.Equal(t, canary, key)
	requireSealed(t, m)
	for _, entry := range m.entries {
		require.False(t, bytes.Contains(entry, []byte(canary)))
	}

	// Another key of secrets.
	m.useKeys(testKeys(t, "ba"))
	_, err = m.RotateSecrets(t.Context())
	require.NoError(t, err)
	m.useKeys(testKeys(t, "a"))
	_, _, err = m.AuthorityKey()
	require.ErrorContains(t, err, "cannot be decrypted")
	m.useKeys(testKeys(t, "b"))
	_, key, err = m.AuthorityKey()
	require.NoError(t, err)
	require.Equal(t, canary, key)

	// An import replaces it.
	require.NoError(t, m.PutAuthority(t.Context(), []byte("two"), canary+"2"))
	a, known := m.Authority()
	require.True(t, known)
	require.Equal(t, "two", string(a.Certificate))

	// The key of one authority cannot be used with the certificate of another one.
	_, err = propose[any](t.Context(), &m.Store, &putAuthority{Authority{[]byte("three"), a.key}, false})
	require.NoError(t, err)
	_, _, err = m.AuthorityKey()
	require.ErrorContains(t, err, keyring.ErrInvalid.Error())
	_, err = propose[any](t.Context(), &m.Store, &putAuthority{Authority{[]byte("three"), canary}, false})
	require.ErrorContains(t, err, "only encrypted")
}

func TestAuthorityIsReadFromAClosedDirectory(t *testing.T) {
	dir := t.TempDir()
	keys := testKeys(t, "a")
	_, _, err := ReadAuthority(dir, keys)
	require.ErrorIs(t, err, ErrNoAuthority)
	s, stop, err := openReplica(dir)
	require.NoError(t, err)
	_, err = s.Provision(t.Context(), Cluster{Name: "local", Partitions: 2, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	require.NoError(t, s.SetSecretKeys(keys))
	require.NoError(t, s.PutAuthority(t.Context(), []byte("one"), canary))
	require.NoError(t, stop())
	certificate, key, err := ReadAuthority(dir, keys)
	require.NoError(t, err)
	require.Equal(t, []string{"one", canary}, []string{string(certificate), key})
	_, _, err = ReadAuthority(dir, nil)
	require.ErrorContains(t, err, "does not have")
}
