// Command sbom prints a CycloneDX bill of materials of Go binaries, from the modules that the
// linker has recorded in them. The version of the program is an argument, since these have none.
package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./scripts/sbom BINARY VERSION")
		os.Exit(64)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write prints the bill of materials of a binary of a version.
func write(path, version string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read build information: %w", err)
	}
	bom := cdx.NewBOM()
	main := component(cdx.ComponentTypeApplication, info.Main.Path, version)
	main.Name = filepath.Base(path)
	bom.Metadata = &cdx.Metadata{Component: &main}
	parts := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", info.GoVersion)}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, component(cdx.ComponentTypeLibrary, m.Path, m.Version))
	}
	bom.Components = &parts
	out := cdx.NewBOMEncoder(os.Stdout, cdx.BOMFileFormatJSON)
	if err := out.SetPretty(true).Encode(bom); err != nil {
		return fmt.Errorf("write bill of materials: %w", err)
	}
	return nil
}

// component describes a module, see https://github.com/package-url/purl-spec.
func component(kind cdx.ComponentType, path, version string) cdx.Component {
	url := fmt.Sprintf("pkg:golang/%s@%s", path, version)
	return cdx.Component{BOMRef: url, Type: kind, Name: path, Version: version, PackageURL: url}
}
