package discovery

import (
	"strings"

	"platform/invoker/endpoint"
)

// arnParts is the number of parts of a function's ARN:
// arn:partition:lambda:region:account:function:name:version.
const arnParts = 8

// NormalizeARN validates the ARN of a function. It must include a version or alias, because
// the code would otherwise change under in-flight invocations.
func NormalizeARN(raw string) (string, error) {
	arn := strings.TrimSpace(raw)
	parts := strings.Split(arn, ":")
	const example = "as in arn:aws:lambda:eu-central-1:123456789012:function:my-function:1"
	switch {
	case len(parts) < 2 || parts[0] != "arn":
		return "", invalid("field 'arn' is invalid: %q is not an ARN, %s", raw, example)
	case len(parts) == arnParts-1 && parts[5] == "function":
		return "", invalid("field 'arn' is invalid: %q lacks the version of the function, %s", raw, example)
	case len(parts) != arnParts:
		return "", invalid("field 'arn' is invalid: %q has %d parts rather than %d, %s", raw, len(parts), arnParts, example)
	case parts[2] != "lambda" || parts[5] != "function":
		return "", invalid("field 'arn' is invalid: %q is not the ARN of a function, %s", raw, example)
	}
	for _, part := range parts {
		if part == "" {
			return "", invalid("field 'arn' is invalid: a part of %q is empty, %s", raw, example)
		}
	}
	if _, err := endpoint.ParseFunction(arn); err != nil {
		return "", invalid("field 'arn' is invalid: a part of %q has an invalid character or length, %s", raw, example)
	}
	return arn, nil
}
