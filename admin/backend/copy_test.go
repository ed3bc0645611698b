package backend

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/partition/journal"
)

// Handlers trust the header with the principal: an operator must not choose the input of calls in
// the name of others.
func TestEditedInputsAreNotInTheNameOfTheOriginalCaller(t *testing.T) {
	original := func() []journal.Header {
		return []journal.Header{{Key: "content-length", Value: "1"}, {Key: "x-platform-principal", Value: "cert:billing"}}
	}
	require.Equal(t, []journal.Header{{Key: "content-length", Value: "20"}, {Key: "x-platform-principal", Value: "ada"}},
		editedHeaders(&access.Principal{Name: "ada"}, original(), 20))
	require.Equal(t, []journal.Header{{Key: "content-length", Value: "20"}}, editedHeaders(&access.Anyone, original(), 20))
}
