package main

import (
	"bytes"
	"os"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"
)

// TestModulesOfAProgram lists those of this test.
func TestModulesOfAProgram(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, write(&out, "v1", []string{self}))
	bom := cdx.NewBOM()
	require.NoError(t, cdx.NewBOMDecoder(&out, cdx.BOMFileFormatJSON).Decode(bom))
	require.Equal(t, "v1", bom.Metadata.Component.Version)
	names := map[string]string{}
	for _, c := range *bom.Components {
		names[c.Name] = c.Version
	}
	require.NotEmpty(t, names["std"])
	require.Contains(t, names, "github.com/CycloneDX/cyclonedx-go")
	require.ErrorContains(t, write(&out, "v1", []string{"/nowhere"}), "/nowhere")
}
