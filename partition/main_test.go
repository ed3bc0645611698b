package partition

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The Go SDK's WebAssembly runtime stops one of its goroutines late.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/tetratelabs/wazero/internal/engine/wazevo.(*engine).CloseModuleCache"))
}
