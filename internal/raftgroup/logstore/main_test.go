package logstore

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if op := os.Getenv(walErrorEnv); op != "" {
		failWriteAheadLog(op)
	}
	goleak.VerifyTestMain(m)
}
