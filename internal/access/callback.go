package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// callbackPrefix begins every callback token.
const callbackPrefix = "plc_"

// NewCallback returns a callback token, which only permits completing one awakeable until a given
// time. It is derived from a token of the cluster, without a request to the server, and becomes
// invalid with that token.
func NewCallback(token, awakeable string, expires time.Time) (string, error) {
	id, ok := SecretID(token)
	if !ok {
		return "", fmt.Errorf("callback tokens are made from a token that begins with %s", secretPrefix)
	}
	hash := Hash(token)
	return fmt.Sprintf("%s%s_%d_%x", callbackPrefix, id, expires.Unix(), callbackCode(hash[:], awakeable, expires.Unix())), nil
}

// callbackCode authenticates an awakeable and a time with the hash of a token. The hash is a key of
// 256 random bits, known only to the holder of the token and to the cluster.
func callbackCode(hash []byte, awakeable string, expires int64) []byte {
	mac := hmac.New(sha256.New, hash)
	_, _ = fmt.Fprintf(mac, "awakeable:%s:%d", awakeable, expires) // does not fail
	return mac.Sum(nil)
}

// Callback returns the principal of the token from which a callback token for an awakeable was
// derived; nil if it is not valid.
func (a *Authenticator) Callback(text, awakeable string) *Principal {
	rest, ok := strings.CutPrefix(text, callbackPrefix)
	parts := strings.Split(rest, "_")
	if !ok || len(parts) != 3 {
		return nil
	}
	expires, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return nil
	}
	code, err := hex.DecodeString(parts[2])
	if err != nil {
		return nil
	}
	return a.granted(parts[0], func(g *Grant, now time.Time) bool {
		return hmac.Equal(code, callbackCode(g.Hash, awakeable, expires)) && now.Unix() < expires
	})
}
