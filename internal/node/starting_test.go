package node

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/config"
)

func TestProvisioningHasToWaitUntilTheNodeLooksForOthers(t *testing.T) {
	n := &Node{cfg: config.Default()}
	reason := "waiting for room on the disk"
	n.waiting.Store(&reason)
	w := httptest.NewRecorder()
	n.startingHandler(true).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/cluster/provision", strings.NewReader("{}")))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), reason)
	require.False(t, n.mayProvision.Load())
}
