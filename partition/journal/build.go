package journal

import "google.golang.org/protobuf/encoding/protowire"

// Field numbers of the messages that the server writes (proto/service). They are encoded by
// hand, which needs only one allocation of the exact size per payload.
const (
	fieldCompletionID protowire.Number = 1
	fieldSignalID     protowire.Number = 2
	fieldSignalName   protowire.Number = 3
	fieldVoid         protowire.Number = 4
	fieldValue        protowire.Number = 5
	fieldFailure      protowire.Number = 6
	fieldInvocationID protowire.Number = 16
	fieldStateKeys    protowire.Number = 17

	fieldInputHeaders protowire.Number = 1
	fieldInputValue   protowire.Number = 14

	fieldContent         protowire.Number = 1 // of Value
	fieldKeys            protowire.Number = 1 // of StateKeys
	fieldPairKey         protowire.Number = 1 // of Header and FailureMetadata
	fieldPairValue       protowire.Number = 2
	fieldFailureCode     protowire.Number = 1
	fieldFailureMessage  protowire.Number = 2
	fieldFailureMetadata protowire.Number = 3
)

// NewInput returns the payload of an Input command, the first entry of every journal. An
// empty value is written as present.
func NewInput(headers []Header, value []byte) []byte {
	size := sizeField(fieldInputValue, sizeContent(value))
	for _, h := range headers {
		size += sizeField(fieldInputHeaders, sizePair(h.Key, h.Value))
	}
	b := make([]byte, 0, size)
	for _, h := range headers {
		b = appendPair(b, fieldInputHeaders, h.Key, h.Value)
	}
	return appendValue(b, fieldInputValue, value)
}

// NewCompletion returns the payload of a completion with a value or failure. An empty value
// is written as present.
func NewCompletion(completion uint32, r Result) []byte {
	id := Completion(completion)
	b := appendID(make([]byte, 0, sizeID(id)+sizeResult(&r)), id)
	return appendResult(b, &r)
}

// NewVoid returns the payload of a completion without a value.
func NewVoid(completion uint32) []byte {
	id := Completion(completion)
	return appendVoid(appendID(make([]byte, 0, sizeID(id)+2), id))
}

// NewInvocationID returns the payload of a CallInvocationIDCompletion.
func NewInvocationID(completion uint32, invocation string) []byte {
	id := Completion(completion)
	b := appendID(make([]byte, 0, sizeID(id)+sizeField(fieldInvocationID, len(invocation))), id)
	return appendString(b, fieldInvocationID, invocation)
}

// NewStateKeys returns the payload of a GetLazyStateKeysCompletion.
func NewStateKeys(completion uint32, keys [][]byte) []byte {
	id, inner := Completion(completion), 0
	for _, k := range keys {
		inner += sizeField(fieldKeys, len(k))
	}
	b := appendID(make([]byte, 0, sizeID(id)+sizeField(fieldStateKeys, inner)), id)
	b = appendHead(b, fieldStateKeys, inner)
	for _, k := range keys {
		b = append(appendHead(b, fieldKeys, len(k)), k...)
	}
	return b
}

// NewSignal returns the payload of a Signal notification; a nil result is written as void.
func NewSignal(id NotificationID, r *Result) []byte {
	if r == nil {
		return appendVoid(appendID(make([]byte, 0, sizeID(id)+2), id))
	}
	return appendResult(appendID(make([]byte, 0, sizeID(id)+sizeResult(r)), id), r)
}

// Members of a oneof are written even if they have the default value.

func sizeID(id NotificationID) int {
	if id.Name != "" {
		return sizeField(fieldSignalName, len(id.Name))
	}
	return 1 + protowire.SizeVarint(uint64(id.Index))
}

func appendID(b []byte, id NotificationID) []byte {
	switch {
	case id.Name != "":
		return appendString(b, fieldSignalName, id.Name)
	case id.Signal:
		return appendNumber(b, fieldSignalID, id.Index)
	}
	return appendNumber(b, fieldCompletionID, id.Index)
}

func appendVoid(b []byte) []byte { return appendHead(b, fieldVoid, 0) }

func sizeResult(r *Result) int {
	if r.Failure != nil {
		return sizeField(fieldFailure, sizeFailure(r.Failure))
	}
	return sizeField(fieldValue, sizeContent(r.Value))
}

func appendResult(b []byte, r *Result) []byte {
	if r.Failure != nil {
		return appendFailure(b, r.Failure)
	}
	return appendValue(b, fieldValue, r.Value)
}

func sizeContent(value []byte) int {
	if len(value) == 0 {
		return 0
	}
	return sizeField(fieldContent, len(value))
}

func appendValue(b []byte, field protowire.Number, value []byte) []byte {
	b = appendHead(b, field, sizeContent(value))
	if len(value) == 0 {
		return b
	}
	return append(appendHead(b, fieldContent, len(value)), value...)
}

func sizeFailure(f *Failure) int {
	size := 0
	if f.Code != 0 {
		size += 1 + protowire.SizeVarint(uint64(f.Code))
	}
	if f.Message != "" {
		size += sizeField(fieldFailureMessage, len(f.Message))
	}
	for _, m := range f.Metadata {
		size += sizeField(fieldFailureMetadata, sizePair(m.Key, m.Value))
	}
	return size
}

func appendFailure(b []byte, f *Failure) []byte {
	b = appendHead(b, fieldFailure, sizeFailure(f))
	if f.Code != 0 {
		b = appendNumber(b, fieldFailureCode, f.Code)
	}
	if f.Message != "" {
		b = appendString(b, fieldFailureMessage, f.Message)
	}
	for _, m := range f.Metadata {
		b = appendPair(b, fieldFailureMetadata, m.Key, m.Value)
	}
	return b
}

func sizePair(key, value string) (size int) {
	if key != "" {
		size += sizeField(fieldPairKey, len(key))
	}
	if value != "" {
		size += sizeField(fieldPairValue, len(value))
	}
	return size
}

func appendPair(b []byte, field protowire.Number, key, value string) []byte {
	b = appendHead(b, field, sizePair(key, value))
	if key != "" {
		b = appendString(b, fieldPairKey, key)
	}
	if value != "" {
		b = appendString(b, fieldPairValue, value)
	}
	return b
}

// sizeField returns the size of a length-delimited field with n bytes of content.
func sizeField(field protowire.Number, n int) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(n)
}

func appendHead(b []byte, field protowire.Number, n int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(n))
}

func appendNumber(b []byte, field protowire.Number, n uint32) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n))
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}
