package errcode

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// provoked names, for every code, a test that brings it about: file and function.
// What can be provoked from outside is, against a real server (test/badinput).
var provoked = map[Code]string{
	META0003: "test/badinput/deployments_test.go TestRejectedDeployments",
	META0004: "test/badinput/deployments_test.go TestDeploymentLifecycle",
	META0005: "test/badinput/deployments_test.go TestRejectedDeployments",
	META0006: "test/badinput/deployments_test.go TestDeploymentLifecycle",
	META0009: "admin/subscriptions_test.go TestBadSubscriptionsAreRejected",
	META0010: "metadata/fsm_test.go TestUnusableStateFilesAreRejected",
	META0011: "metadata/fsm_test.go TestUnusableStateFilesAreRejected",
	META0012: "test/badinput/deployments_test.go TestRejectedDeployments",
	META0013: "test/badinput/deployments_test.go TestRejectedDeployments",
	META0014: "test/badinput/ingress_test.go TestHTTP11Endpoints",
	META0015: "test/badinput/deployments_test.go TestRejectedDeployments",
	META0016: "test/badinput/versions_test.go TestInPlaceUpdateMovesRunningInvocations",
	META0017: "test/badinput/versions_test.go TestInPlaceUpdateMovesRunningInvocations",
	META0018: "metadata/fsm_test.go TestUnusableStateFilesAreRejected",
	META0019: "admin/cluster_survival_test.go TestChangesThatLeaveNoLossAreRejected",
	META0020: "metadata/secrets_test.go TestSecretsOfAMissingKeyAreNotUsed",
	META0021: "metadata/registry_test.go TestTheNumberOfDeploymentsIsLimited",
	META0022: "internal/node/egress_test.go TestOwnPortsCannotBeRegistered",

	RT0001: "test/badinput/attempts_test.go TestEndpointFaultsAreReportedAndRetried",
	RT0002: "test/badinput/start_test.go TestRejectedStarts",
	RT0003: "test/badinput/attempts_test.go TestEndpointFaultsAreReportedAndRetried",
	RT0004: "test/badinput/start_test.go TestRejectedStarts",
	RT0005: "test/badinput/start_test.go TestRejectedStarts",
	RT0006: "invoker/unreadable_test.go TestUnreadableJournals",
	RT0007: "test/badinput/policy_test.go TestInvocationPausesAfterMaxAttempts",
	RT0009: "test/badinput/start_test.go TestRejectedStarts",
	RT0010: "test/badinput/attempts_test.go TestEndpointFaultsAreReportedAndRetried",
	RT0011: "test/badinput/versions_test.go TestServiceFallsBackToPreviousDeployment",
	RT0012: "test/badinput/attempts_test.go TestEndpointFaultsAreReportedAndRetried",
	RT0013: "invoker/failures_test.go TestDeploymentsThatCannotBeUsed",
	RT0014: "invoker/failures_test.go TestPinnedVersionThatIsGone",
	RT0015: "test/badinput/attempts_test.go TestEndpointFaultsAreReportedAndRetried",
	RT0016: "test/badinput/attempts_test.go TestEndpointFaultsAreReportedAndRetried",
	RT0017: "test/badinput/attempts_test.go TestEndpointFaultsAreReportedAndRetried",
	RT0018: "test/badinput/attempts_test.go TestEndpointFaultsAreReportedAndRetried",
	RT0019: "test/badinput/attempts_test.go TestEndpointFaultsAreReportedAndRetried",
	RT0020: "ingress/problem_test.go TestBadRequestsAreExplained",
	RT0021: "test/badinput/versions_test.go TestServerLimitsAreReported",
	RT0022: "test/badinput/versions_test.go TestServerLimitsAreReported",
	RT0023: "test/badinput/attempts_test.go TestEndpointFaultsAreReportedAndRetried",
	RT0024: "invoker/failures_test.go TestFailedAttempts",
	RT0025: "invoker/protocol/depth_test.go TestAwaitsNestedTooDeeply",
	RT0026: "ingress/reservation_test.go TestBodiesBeyondTheBudgetAreRejected",
	RT0027: "invoker/statesize_test.go TestStateBeyondTheLimitPausesTheInvocation",
}

func TestEveryCodeIsProvokedSomewhere(t *testing.T) {
	require.Len(t, provoked, len(All()), "codes in provoked that the catalogue lacks")
	for _, entry := range All() {
		where, named := provoked[entry.Code]
		require.True(t, named, "which test provokes %s?", entry.Code)
		file, test, _ := strings.Cut(where, " ")
		require.Contains(t, testsOf(t, file), test, "%s is to be provoked there", entry.Code)
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		require.NoError(t, err)
		require.Contains(t, string(text), string(entry.Code), "%s does not speak of the code", where)
	}
}

// testsOf are the names of the functions of a file.
func testsOf(t *testing.T, file string) (names []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", file), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			names = append(names, f.Name.Name)
		}
	}
	return names
}
