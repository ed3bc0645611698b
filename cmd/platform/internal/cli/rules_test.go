package cli

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeletingARuleSaysHowManyInvocationsWait(t *testing.T) {
	for pattern, want := range map[string]string{
		"acme":      "3 invocations wait in the scope acme. Those that only this rule holds back start as soon as nodes have free slots.\n",
		"acme/team": "3 invocations wait in the scope acme. Those that only this rule holds back start as soon as nodes have free slots.\n",
		"*":         "",
	} {
		t.Run(pattern, func(t *testing.T) {
			a, out := at(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/query" {
					_, _ = io.WriteString(w, `{"rows":[{"vqueues":1,"inbox":3,"running":1}]}`)
				}
			})
			a.sayWaitingForRule(t.Context(), pattern)
			require.Equal(t, want, out.String())
		})
	}
}
