package lambda

import (
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"platform/invoker/endpoint"
)

func TestAPIClientsAreBounded(t *testing.T) {
	c := New(DefaultConfig())
	c.base = &aws.Config{}
	for i := range 3 * maxAPIs {
		f := &endpoint.Function{Region: "eu-" + strconv.Itoa(i)}
		client, err := c.api(t.Context(), f)
		require.NoError(t, err)
		again, err := c.api(t.Context(), f)
		require.NoError(t, err)
		require.Same(t, client, again)
	}
	require.LessOrEqual(t, len(c.apis), maxAPIs)
}
