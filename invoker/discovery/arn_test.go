package discovery

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNormalizeARN(t *testing.T) {
	const good = "arn:aws:lambda:eu-central-1:123456789012:function:my-function:1"
	got, err := NormalizeARN(" " + good + " ")
	require.NoError(t, err)
	require.Equal(t, good, got)
	for arn, want := range map[string]string{
		"":              "is not an ARN",
		"http://a:1/":   "is not an ARN",
		"arn:aws:s3::b": "has 5 parts rather than 8",
		"arn:aws:lambda:eu-central-1:123456789012:function:my-function": "lacks the version",
		"arn:aws:lambda:eu-central-1:123456789012:function::1":          "a part of",
		"arn:aws:lambda:eu-central-1:123456789012:layer:my-layer:1":     "is not the ARN of a function",
		good + ":2": "has 9 parts",
		"arn:aws:lambda:evil.example/#:123456789012:function:f:1": "a part of",
		"arn:aws:lambda:eu-central-1:12:function:f:1":             "a part of",
	} {
		_, err := NormalizeARN(arn)
		require.ErrorContains(t, err, want, arn)
	}
}
