// Command licences checks the licences of the modules that the commands are built of.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are licences that ask for no more than a notice, and MPL-2.0, which asks for the
// source of changes to the files under it.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "0BSD", "BSD-2-Clause-Patent"}

// minCover is the least part of a licence file, in percent, that known licences must be.
const minCover = 75

func main() {
	modules, err := modules()
	if err == nil {
		err = check(modules)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("licences: %d modules\n", len(modules))
}

// modules returns the folders of modules, by their path and version.
func modules() (map[string]string, error) {
	const format = `{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}} {{.Dir}}{{end}}{{end}}`
	out, err := exec.Command("go", "list", "-deps", "-f", format, "./cmd/...").Output()
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, folder, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all[name] = folder
		}
	}
	if len(all) == 0 {
		return nil, errors.New("list modules: there are none")
	}
	return all, nil
}

// check returns an error with each module whose licence is not allowed.
func check(modules map[string]string) error {
	var errs []error
	for name, folder := range modules {
		found, err := licencesIn(folder)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		case len(found) == 0:
			errs = append(errs, fmt.Errorf("%s: no licence was recognized", name))
		}
		for _, id := range found {
			if !slices.Contains(allowed, id) {
				errs = append(errs, fmt.Errorf("%s: licence %s is not allowed", name, id))
			}
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// licencesIn returns the licences of the files in a folder whose names say that they are
// licences.
func licencesIn(folder string) (ids []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		cover := licensecheck.Scan(text)
		if cover.Percent < minCover {
			continue
		}
		for _, m := range cover.Match {
			ids = append(ids, m.ID)
		}
	}
	return ids, nil
}
