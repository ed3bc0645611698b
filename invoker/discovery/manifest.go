package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"slices"
	"strings"
)

// mediaTypes are the supported manifest versions, oldest first.
var mediaTypes = []string{
	"application/vnd.restate.endpointmanifest.v1+json",
	"application/vnd.restate.endpointmanifest.v2+json",
	"application/vnd.restate.endpointmanifest.v3+json",
	"application/vnd.restate.endpointmanifest.v4+json",
}

// acceptAll has no parameters, because some endpoints compare media types verbatim.
var acceptAll = strings.Join(mediaTypes, ", ")

// knownMediaType accepts parameters such as a charset.
func knownMediaType(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && slices.Contains(mediaTypes, media)
}

// manifest is the discovery response. Newer versions only added fields, so one struct decodes
// all. Unknown fields are ignored.
type manifest struct {
	ProtocolMode       string            `json:"protocolMode"`
	MinProtocolVersion int64             `json:"minProtocolVersion"`
	MaxProtocolVersion int64             `json:"maxProtocolVersion"`
	LambdaCompression  string            `json:"lambdaCompression"`
	Services           []serviceManifest `json:"services"`
}

type optionsManifest struct {
	Documentation        string            `json:"documentation"`
	Metadata             map[string]string `json:"metadata"`
	InactivityTimeout    *millis           `json:"inactivityTimeout"`
	AbortTimeout         *millis           `json:"abortTimeout"`
	JournalRetention     *millis           `json:"journalRetention"`
	IdempotencyRetention *millis           `json:"idempotencyRetention"`
	EnableLazyState      *bool             `json:"enableLazyState"`
	IngressPrivate       *bool             `json:"ingressPrivate"`
	RetryInitialInterval *millis           `json:"retryPolicyInitialInterval"`
	RetryMaxInterval     *millis           `json:"retryPolicyMaxInterval"`
	RetryMaxAttempts     *int64            `json:"retryPolicyMaxAttempts"`
	RetryFactor          *float64          `json:"retryPolicyExponentiationFactor"`
	RetryOnMaxAttempts   *string           `json:"retryPolicyOnMaxAttempts"`
}

type serviceManifest struct {
	optionsManifest
	Name     string            `json:"name"`
	Type     string            `json:"ty"`
	Handlers []handlerManifest `json:"handlers"`
}

type handlerManifest struct {
	optionsManifest
	Name              string          `json:"name"`
	Type              string          `json:"ty"`
	Input             *inputManifest  `json:"input"`
	Output            *outputManifest `json:"output"`
	WorkflowRetention *millis         `json:"workflowCompletionRetention"`
}

type inputManifest struct {
	Required    bool            `json:"required"`
	ContentType *string         `json:"contentType"`
	JSONSchema  json.RawMessage `json:"jsonSchema"`
}

type outputManifest struct {
	ContentType           *string         `json:"contentType"`
	SetContentTypeIfEmpty bool            `json:"setContentTypeIfEmpty"`
	JSONSchema            json.RawMessage `json:"jsonSchema"`
}

func parseManifest(body []byte) (*manifest, error) {
	var m manifest
	err := json.Unmarshal(body, &m)
	if err == nil {
		return &m, nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil, invalid("the discovery response has a field %q that cannot be a %s", wrong.Field, wrong.Value)
	}
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		line := bytes.Count(body[:min(int(bad.Offset), len(body))], []byte{'\n'}) + 1
		return nil, invalid("the discovery response is not valid JSON (line %d): %v", line, bad)
	}
	return nil, invalid("the discovery response cannot be decoded: %v", err)
}

// nonNull returns nil for a JSON null.
func nonNull(raw json.RawMessage) json.RawMessage {
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil
	}
	return raw
}
