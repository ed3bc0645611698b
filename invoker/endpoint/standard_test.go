package endpoint

import "testing"

// standardHTTP2 makes the clients of tests use the HTTP/2 of net/http.
var standardHTTP2 bool

// TestStandardHTTP2 runs what both implementations must do with that of net/http.
func TestStandardHTTP2(t *testing.T) {
	standardHTTP2 = true
	defer func() { standardHTTP2 = false }()
	for name, test := range map[string]func(*testing.T){
		"streams":          TestBidirectionalStream,
		"large bodies":     TestBodiesLargerThanAllWindows,
		"connections":      TestConnectionsAreOpenedOnDemand,
		"finish":           TestFinishHalfClosesAndReadsTheRest,
		"drain":            TestAnEndlessResponseIsReset,
		"reset":            TestResetReachesThePeer,
		"HTTP/1":           TestHTTP1IsRecognized,
		"no settings":      TestAPeerThatSendsNoSettings,
		"no streams":       TestAPeerThatAcceptsNoStreams,
		"sent again":       TestAnUnprocessedRequestIsSentAgain,
		"refused":          TestAPeerThatRefusesEverything,
		"GOAWAY":           TestStreamsBelowTheGOAWAYLimitContinue,
		"closing server":   TestAServerThatKeepsClosingConnections,
		"idle":             TestIdleConnectionsAreClosed,
		"pings":            TestAPeerThatDoesNotRespondToPings,
		"exhausted":        TestAnExhaustedConnectionIsRetired,
		"exhausted later":  TestAnExhaustedConnectionIsRetiredDuringAResponse,
		"exhausted, empty": TestAnExhaustedConnectionWithoutOtherStreamsIsClosed,
		"long responses":   TestAbortingALongResponseRetiresItsConnection,
		"early response":   TestAnEarlyResponseEndsTheRequest,
		"flow control":     TestFlowControlOfRequests,
		"hostile peers":    TestAHostilePeerDoesNotAffectOthers,
	} {
		t.Run(name, test)
	}
}
