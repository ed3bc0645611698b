package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// Blob describes a large value. All its bytes follow from the description, which they begin with.
type Blob struct {
	ID   string `json:"id"`
	Size int    `json:"size"` // without the description
	Seq  int    `json:"seq"`  // in results: how many values the object had received before
	// Step, Value and Result are, in inputs, the sizes of what the handler makes: the result of a step, the new value of
	// the object, and its own result.
	Step   int `json:"step,omitempty"`
	Value  int `json:"value,omitempty"`
	Result int `json:"result,omitempty"`
}

// Bytes returns the value.
func (b Blob) Bytes() []byte {
	head, err := json.Marshal(b)
	if err != nil {
		panic(err) // a string and numbers
	}
	value := make([]byte, len(head)+1+b.Size)
	copy(value, head)
	value[len(head)] = '\n'
	_, _ = rand.NewChaCha8(sha256.Sum256(head)).Read(value[len(head)+1:])
	return value
}

// ParseBlob returns the description of a value. It is an error if a byte of the value is wrong.
func ParseBlob(value []byte) (Blob, error) {
	head, _, _ := bytes.Cut(value, []byte{'\n'})
	var b Blob
	if err := json.Unmarshal(head, &b); err != nil {
		return b, fmt.Errorf("corrupt: a value of %d bytes begins with %.60q", len(value), value)
	}
	want := b.Bytes()
	if bytes.Equal(value, want) {
		return b, nil
	}
	at := 0
	for at < min(len(value), len(want)) && value[at] == want[at] {
		at++
	}
	return b, fmt.Errorf("corrupt: %s has %d instead of %d bytes, or byte %d differs", b.ID, len(value), len(want), at)
}
