package endpoint

import (
	"bytes"
	"testing"
)

// FuzzGreeting: the same bytes are rewritten however the first bytes of a peer are split, and only
// values of settings.
func FuzzGreeting(f *testing.F) {
	settings := "\x00\x00\x0c\x04\x00\x00\x00\x00\x00" + "\x00\x03\x00\x00\x00\x64" + "\x00\x05\x00\xff\xff\xff"
	for _, seed := range []string{settings, settings[:13], "HTTP/1.1 200 OK\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\xff\xff\xff\x04\x00\x00\x00\x00\x00\x00\x05"} {
		f.Add([]byte(seed), uint8(5))
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		whole, cutUp := bytes.Clone(data), bytes.Clone(data)
		var a, b greeting
		a.isHTTP1(whole)
		a.lowerFrameSize(whole)
		for rest := cutUp; len(rest) > 0; {
			n := min(int(cut)+1, len(rest))
			b.lowerFrameSize(rest[:n])
			rest = rest[n:]
		}
		if !bytes.Equal(whole, cutUp) || a.over() != b.over() {
			t.Fatalf("%x in one piece, %x in pieces", whole, cutUp)
		}
		for i := range data {
			inValue := i >= frameHeaderLen && (i-frameHeaderLen)%settingLen >= 2
			if whole[i] != data[i] && !inValue {
				t.Fatalf("byte %d of %x became %x", i, data, whole)
			}
		}
	})
}
