// Command sbom prints the modules that Go programs were built from, as a software bill of materials
// in the CycloneDX format. It reads them from the programs.
package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION PROGRAM...")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func write(out io.Writer, version string, programs []string) error {
	modules := map[string]cdx.Component{}
	names := make([]cdx.Component, 0, len(programs))
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return fmt.Errorf("read the modules of %s: %w", program, err)
		}
		names = append(names, cdx.Component{Type: cdx.ComponentTypeApplication, Name: filepath.Base(program), Version: version})
		add(modules, "std", strings.TrimPrefix(info.GoVersion, "go"), "")
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			add(modules, m.Path, m.Version, m.Sum)
		}
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{Type: cdx.ComponentTypeApplication, Name: "platform", Version: version, Components: &names}}
	components := make([]cdx.Component, 0, len(modules))
	for _, ref := range slices.Sorted(maps.Keys(modules)) {
		components = append(components, modules[ref])
	}
	bom.Components = &components
	if err := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return fmt.Errorf("write the bill of materials: %w", err)
	}
	return nil
}

// add adds a module. Its checksum is that of go.sum.
func add(modules map[string]cdx.Component, path, version, sum string) {
	ref := "pkg:golang/" + path + "@" + version
	c := cdx.Component{BOMRef: ref, PackageURL: ref, Type: cdx.ComponentTypeLibrary, Name: path, Version: version}
	if sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: sum}}
	}
	modules[ref] = c
}
