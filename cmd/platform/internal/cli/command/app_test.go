package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReportOfAnInterrupt(t *testing.T) {
	var out bytes.Buffer
	a := &App{System: System{Err: &out, Getenv: os.Getenv}}
	a.Report(fmt.Errorf("get: %w", context.Canceled))
	require.Equal(t, "Interrupted\n", out.String())
	a.Report(WithHint(context.Canceled, "It continues."))
	require.Equal(t, "Interrupted\nInterrupted\nIt continues.\n", out.String())
}
