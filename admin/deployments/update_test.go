package deployments

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/invoker/discovery"
)

func TestFunctionsInOtherVersionsGetTheSameHeaders(t *testing.T) {
	const arn = "arn:aws:lambda:eu-central-1:123456789012:function:greeter"
	of := func(arn string) string { return destination(&discovery.Request{ARN: arn}) }
	require.Equal(t, of(arn+":1"), of(arn+":2"))
	require.Equal(t, of(arn), of(arn+":2"))
	require.NotEqual(t, of(arn+":1"), of(arn+"x:1"))
	require.NotEqual(t, of(arn), of("arn:aws:lambda:eu-central-1:999999999999:function:greeter"))
}
