package cli

import (
	"bytes"
	"encoding/json"
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
	if bytes.HasPrefix(patch, []byte("{")) {
		return jsonpatch.MergePatch(document, patch)
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, fmt.Errorf("a patch is an array of operations or an object: %w", err)
	}
	return operations.Apply(document)
}
