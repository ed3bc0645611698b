package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/client"
)

func TestARegistrationShowsWhichChangesOfOperatorsEnd(t *testing.T) {
	service := func(text string) client.Service {
		var s client.Service
		require.NoError(t, json.Unmarshal([]byte(text), &s.Fields))
		return s
	}
	u := update{
		before: service(`{"revision":2,"inactivity_timeout":"100ms","public":true,"overridden":{"inactivity_timeout":"1m"},"server_defaults":[]}`),
		after:  service(`{"revision":3,"inactivity_timeout":"1m","public":false,"server_defaults":["inactivity_timeout"]}`),
	}
	require.Equal(t, []string{"inactivity_timeout: 100ms -> 1m (an operator had changed it)", "public: true -> false"}, optionChanges(u))
}
