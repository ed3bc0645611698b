package keyring

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func keyText(fill byte) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(fill)), KeyBytes)))
}

func parse(t require.TestingT, texts ...string) *Keyring {
	k, err := Parse(strings.Join(texts, "\n"))
	require.NoError(t, err)
	return k
}

func TestNewestKeyEncryptsAndAllDecrypt(t *testing.T) {
	at := Place{"deployment", "dp_1", "authorization"}
	old := parse(t, keyText('a'))
	both := parse(t, "# in use since May", keyText('b'), "", keyText('a'))
	require.Equal(t, []string{both.Newest(), old.Newest()}, both.IDs())

	before, after := old.Seal(at, "s3cret"), both.Seal(at, "s3cret")
	for _, sealed := range []string{before, after} {
		require.NotContains(t, sealed, "s3cret")
		got, err := both.Open(at, sealed)
		require.NoError(t, err)
		require.Equal(t, "s3cret", got)
	}
	require.NotEqual(t, after, both.Seal(at, "s3cret"), "equal secrets do not look equal")

	_, err := old.Open(at, after)
	var missing *MissingKeyError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, both.Newest(), missing.ID)
	_, err = (*Keyring)(nil).Open(at, after)
	require.ErrorAs(t, err, &missing)
}

func TestSecretsAreBoundToTheirPlace(t *testing.T) {
	k := parse(t, keyText('a'))
	at := Place{"deployment", "dp_1", "authorization"}
	sealed := k.Seal(at, "s3cret")
	for _, other := range []Place{
		{"deployment", "dp_2", "authorization"}, {"deployment", "dp_1", "x-api-key"}, {"kafka cluster", "dp_1", "authorization"},
		{"deploymentdp_1", "", "authorization"}, {"deployment", "dp_1authorization", ""},
	} {
		_, err := k.Open(other, sealed)
		require.ErrorIs(t, err, ErrInvalid, other)
	}
}

func TestAnyChangeIsDetected(t *testing.T) {
	k := parse(t, keyText('a'), keyText('b'))
	at := Place{"kafka cluster", "main", "sasl.password"}
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.String().Draw(t, "secret")
		sealed := k.Seal(at, secret)
		got, err := k.Open(at, sealed)
		require.NoError(t, err)
		require.Equal(t, secret, got)

		damaged := []byte(sealed)
		i := rapid.IntRange(0, len(damaged)-1).Draw(t, "position")
		damaged[i] ^= byte(rapid.IntRange(1, 255).Draw(t, "change"))
		if got, err := k.Open(at, string(damaged)); err == nil {
			require.Equal(t, secret, got, "an equivalent encoding") // unused bits of the last base64 digit
		}
		_, err = k.Open(at, sealed[:rapid.IntRange(0, len(sealed)-1).Draw(t, "length")])
		require.Error(t, err)
	})
}

func TestUnusableKeysAreRefusedWithoutShowingThem(t *testing.T) {
	good := keyText('a')
	for _, bad := range []struct{ text, message string }{
		{"", "there is no key"},
		{"# nothing\n\n", "there is no key"},
		{"hunter2", "key 1 is not 32 bytes in base64"},
		{good + "\n" + good[:20], "key 2 is not 32 bytes"},
		{base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 16))), "key 1 is not 32 bytes"},
		{good + "," + good, "key 2 is there twice"},
	} {
		_, err := Parse(bad.text)
		require.ErrorContains(t, err, bad.message, bad.text)
		require.NotContains(t, err.Error(), "hunter2")
		require.NotContains(t, err.Error(), good)
	}
	var many []string
	for i := range byte(maxKeys + 1) {
		many = append(many, keyText('A'+i))
	}
	_, err := Parse(strings.Join(many, ","))
	require.ErrorContains(t, err, "there are 17 keys")
}

func TestTextsThatAreNotEncrypted(t *testing.T) {
	k := parse(t, keyText('a'))
	for _, text := range []string{"", "Bearer x", prefix, prefix + "abc", prefix + "abc:def", prefix + k.Newest(), prefix + k.Newest() + ":!", prefix + k.Newest() + ":"} {
		_, err := k.Open(Place{}, text)
		require.ErrorIs(t, err, ErrInvalid, text)
	}
	require.True(t, Sealed(prefix+"anything"))
	require.False(t, Sealed("aes-256-gcm:"))
}
