package checks

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// releaseConfig is the part of the configuration of GoReleaser 2 that the repository uses. A field
// that is not here is an error, since GoReleaser itself is too large for these tests.
type releaseConfig struct {
	Version     int
	ProjectName string `yaml:"project_name"`
	Dist        string
	Before      struct{ Hooks []string }
	Builds      []struct {
		ID, Main, Binary                        string
		Env, Goos, Goarch, Tags, Flags, Ldflags []string
		ModTimestamp                            string `yaml:"mod_timestamp"`
	}
	Archives []struct {
		ID           string
		IDs          []string `yaml:"ids"`
		Formats      []string
		NameTemplate string `yaml:"name_template"`
		Files        []string
	}
	SBOMs []struct {
		ID, Artifacts, Cmd string
		Documents, Args    []string
	} `yaml:"sboms"`
	NFPMs []struct {
		ID                                                          string
		IDs                                                         []string `yaml:"ids"`
		PackageName                                                 string   `yaml:"package_name"`
		Formats                                                     []string
		Maintainer, Description, Homepage, License, Section, Bindir string
		Contents                                                    []struct{ Src, Dst, Type string }
		Scripts                                                     struct{ Postinstall, Preremove string }
	} `yaml:"nfpms"`
	Checksum struct {
		NameTemplate string `yaml:"name_template"`
	}
	Changelog struct{ Disable bool }
	Release   struct {
		GitHub struct{ Owner, Name string } `yaml:"github"`
	}
}

// readReleaseConfig reads the configuration, without unknown fields.
func readReleaseConfig(t *testing.T) (c releaseConfig) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(readText(t, ".goreleaser.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestReleaseTargets checks for what a release is, and that it is checked by a sum and a bill of
// materials.
func TestReleaseTargets(t *testing.T) {
	c := readReleaseConfig(t)
	if c.Version != 2 || len(c.Builds) != 1 || len(c.Archives) != 1 || len(c.NFPMs) != 1 || len(c.SBOMs) != 1 || c.Checksum.NameTemplate == "" {
		t.Fatalf("the release is %+v", c)
	}
	b := c.Builds[0]
	if !slices.Equal(b.Goos, []string{"linux", "darwin"}) || !slices.Equal(b.Goarch, []string{"amd64", "arm64"}) {
		t.Errorf("it is for %v on %v", b.Goos, b.Goarch)
	}
	if how := strings.Join(c.SBOMs[0].Args, " "); !strings.Contains(how, "{{ .Version }}") {
		t.Errorf("the bill of materials has no version: %s", how)
	}
	if !slices.Equal(c.NFPMs[0].Formats, []string{"deb"}) {
		t.Errorf("packages are %v", c.NFPMs[0].Formats)
	}
}

// buildFlag matches a flag of the compiler or a variable of its environment that matters to the binary.
var buildFlag = regexp.MustCompile(`-trimpath|-buildvcs=\w+|-tags \w+|-s -w|-X main\.\w+=|CGO_ENABLED=\d`)

// TestBuildsHaveTheSameFlags: the Makefile, the image and the release make the same binary.
func TestBuildsHaveTheSameFlags(t *testing.T) {
	b := readReleaseConfig(t).Builds[0]
	ofRelease := strings.Join(slices.Concat(b.Env, b.Flags, []string{"-tags " + strings.Join(b.Tags, " ")}, b.Ldflags), " ")
	makefile := readText(t, "Makefile")
	_, recipe, _ := strings.Cut(makefile, "\nbuild: ")
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	_, last, _ := strings.Cut(readText(t, "deploy", "image", "Dockerfile"), "ARG DATE")
	want := flagsIn(recipe)
	if len(want) != 8 {
		t.Errorf("the Makefile has the flags %v", want)
	}
	for name, text := range map[string]string{"the image": last, "the release": ofRelease} {
		if got := flagsIn(text); !slices.Equal(got, want) {
			t.Errorf("%s has the flags %v, the Makefile %v", name, got, want)
		}
	}
	for _, name := range regexp.MustCompile(`-X main\.(\w+)=`).FindAllStringSubmatch(recipe, -1) {
		if !strings.Contains(readText(t, "cmd", "limitgate", "version.go"), "\n\t"+name[1]+" ") {
			t.Errorf("the linker sets %s, which is no variable of the program", name[1])
		}
	}
}

// flagsIn returns the flags in a text, sorted.
func flagsIn(text string) []string {
	return slices.Sorted(slices.Values(buildFlag.FindAllString(text, -1)))
}

// TestPackageContents checks that each file of the package is there or made before, that its paths are
// those that the unit and the settings name, and that its scripts are right.
func TestPackageContents(t *testing.T) {
	c := readReleaseConfig(t)
	share := shareFiles(t)
	p := c.NFPMs[0]
	placed := map[string]string{}
	for _, f := range p.Contents {
		placed[f.Dst] = f.Src
		made := slices.Contains(share, strings.TrimPrefix(f.Src, "bin/share/"))
		if _, err := os.Stat(inRoot(f.Src)); err != nil && !made {
			t.Errorf("%s: %v", f.Src, err)
		}
		if strings.HasPrefix(f.Dst, "/etc/") != (f.Type == "config|noreplace") {
			t.Errorf("%s is of type %q", f.Dst, f.Type)
		}
	}
	u := readUnit(t, "deploy", "systemd", "limitgate.service")
	words := strings.Fields(u["Service.ExecStart"][0])
	if words[0] != p.Bindir+"/"+c.Builds[0].Binary || placed[words[3]] != "deploy/systemd/limitgate.yaml" {
		t.Errorf("the unit starts %v, and the package has %v", words, placed)
	}
	settings := printedSettings(t, nil, "--config", inRoot("deploy", "systemd", "limitgate.yaml"))
	if placed[settings["limits"]] == "" || placed["/usr/lib/systemd/system/limitgate.service"] != "deploy/systemd/limitgate.service" {
		t.Errorf("the package has %v", placed)
	}
	for _, script := range []string{p.Scripts.Postinstall, p.Scripts.Preremove} {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", inRoot(script)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
	for _, pattern := range c.Archives[0].Files {
		if found, err := filepath.Glob(inRoot(pattern)); (err != nil || len(found) == 0) && pattern != "bin/share/*" {
			t.Errorf("the archives have %s, which does not exist", pattern)
		}
	}
}

// shareFiles returns the names of the files that make package-files writes.
func shareFiles(t *testing.T) []string {
	t.Helper()
	if hooks := readReleaseConfig(t).Before.Hooks; !slices.Equal(hooks, []string{"make package-files"}) {
		t.Fatalf("before a release runs %v", hooks)
	}
	files := []string{"limitgate.1"}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, err := runRelease(t, nil, "completion", shell); err != nil || len(out) < 1000 {
			t.Errorf("completion of %s: %v", shell, err)
		}
		files = append(files, "limitgate."+shell)
	}
	if !strings.Contains(readText(t, "Makefile"), "for shell in bash zsh fish;") {
		t.Error("make package-files writes completions of other shells")
	}
	return files
}
