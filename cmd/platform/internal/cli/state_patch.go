package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// applyPatch changes a JSON document by a patch: an array of operations (RFC 6902), or
// an object that is merged into it (RFC 7396).
func applyPatch(document, patch []byte) ([]byte, error) {
	patched, err := patchedDocument(document, bytes.TrimSpace(patch))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, patched, "", "  "); err != nil {
		return nil, fmt.Errorf("format the result: %w", err)
	}
	return out.Bytes(), nil
}

func patchedDocument(document, patch []byte) ([]byte, error) {
	var value any
	if err := json.Unmarshal(patch, &value); err != nil {
		return nil, fmt.Errorf("it is not valid JSON: %w", err)
	}
	switch value.(type) {
	case map[string]any:
		return jsonpatch.MergePatch(document, patch)
	case []any:
	default:
		return nil, errors.New("it must be an array of operations or an object")
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return operations.Apply(document)
}
