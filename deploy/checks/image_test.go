package checks

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// image is what the last stage of a Dockerfile makes.
type image struct {
	base        string
	user        string
	entrypoint  []string
	command     []string
	healthcheck []string
	environ     []string
	ports       []string
	files       map[string]string // the source of each path; "" is the program
}

// readDockerfile returns the image of a Dockerfile, as BuildKit reads it.
func readDockerfile(t *testing.T, text string) (made image, stages []instructions.Stage) {
	t.Helper()
	parsed, err := parser.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Warnings) > 0 {
		t.Errorf("BuildKit warns: %v", parsed.Warnings)
	}
	stages, _, err = instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := stages[len(stages)-1]
	made = image{base: last.BaseName, files: map[string]string{}}
	for _, c := range last.Commands {
		made.apply(t, c)
	}
	return made, stages
}

// apply adds the effect of an instruction.
func (m *image) apply(t *testing.T, c instructions.Command) {
	t.Helper()
	switch c := c.(type) {
	case *instructions.CopyCommand:
		source := c.SourcePaths[0]
		if c.From != "" {
			source = ""
		}
		m.files[c.DestPath] = source
	case *instructions.EnvCommand:
		for _, pair := range c.Env {
			m.environ = append(m.environ, pair.Key+"="+pair.Value)
		}
	case *instructions.UserCommand:
		m.user = c.User
	case *instructions.ExposeCommand:
		m.ports = append(m.ports, c.Ports...)
	case *instructions.EntrypointCommand:
		m.entrypoint = withoutShell(t, c.Name(), c.ShellDependantCmdLine)
	case *instructions.CmdCommand:
		m.command = withoutShell(t, c.Name(), c.ShellDependantCmdLine)
	case *instructions.HealthCheckCommand:
		if c.Health.Test[0] != "CMD" {
			t.Errorf("the health check %v needs a shell", c.Health.Test)
		}
		m.healthcheck = c.Health.Test[1:]
	default:
		t.Errorf("the last stage has %s, which these tests do not know", c.Name())
	}
}

// withoutShell returns the words of a command, which must not need a shell.
func withoutShell(t *testing.T, name string, line instructions.ShellDependantCmdLine) []string {
	t.Helper()
	if line.PrependShell {
		t.Errorf("%s %v needs a shell", name, line.CmdLine)
	}
	return line.CmdLine
}

// variable returns the value of a variable of the image.
func (m *image) variable(name string) string {
	for _, v := range m.environ {
		if value, found := strings.CutPrefix(v, name+"="); found {
			return value
		}
	}
	return ""
}

// ours is the image of the repository.
func ours(t *testing.T) image {
	t.Helper()
	made, _ := readDockerfile(t, readText(t, "deploy", "image", "Dockerfile"))
	return made
}

// TestImageConfig checks that the image runs the program alone, as a user without rights, and that
// its variables, ports and files are those of the program.
func TestImageConfig(t *testing.T) {
	made := ours(t)
	if made.base != "gcr.io/distroless/static-debian13:nonroot" || made.user != "65532:65532" {
		t.Errorf("base %s, user %s", made.base, made.user)
	}
	if want := []string{"/limitgate", "serve"}; !slices.Equal(made.entrypoint, want) || len(made.command) > 0 {
		t.Errorf("entrypoint %v, command %v", made.entrypoint, made.command)
	}
	if want := []string{"/limitgate", "health"}; !slices.Equal(made.healthcheck, want) {
		t.Errorf("health check %v, want %v", made.healthcheck, want)
	}
	if source, found := made.files["/limitgate"]; !found || source != "" {
		t.Errorf("/limitgate is %q", source)
	}
	limits := made.files[made.variable("LIMITGATE_LIMITS")]
	if limits != "deploy/image/limits.yaml" {
		t.Errorf("LIMITGATE_LIMITS names %q of the files %v", limits, made.files)
	}
	settings := printedSettings(t, made.environ)
	var ports []string
	for _, name := range []string{"listen", "admin"} {
		_, port, _ := strings.Cut(settings[name], ":")
		ports = append(ports, port)
	}
	if !slices.Equal(made.ports, ports) {
		t.Errorf("ports %v, want %v", made.ports, ports)
	}
	if settings["limits"] != made.variable("LIMITGATE_LIMITS") {
		t.Errorf("the program reads limits of %q", settings["limits"])
	}
}

// printedSettings returns the settings of serve with an environment, whose variables must exist.
func printedSettings(t *testing.T, environ []string, args ...string) map[string]string {
	t.Helper()
	out, err := runRelease(t, environ, append([]string{"serve", "--print-config", "--json"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Name, Value string }
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, r := range rows {
		settings[r.Name] = r.Value
	}
	return settings
}

// TestImageSources checks that the build has all it copies: no source is missing or left out by
// Dockerfile.dockerignore, nor a folder that the program is compiled of.
func TestImageSources(t *testing.T) {
	_, stages := readDockerfile(t, readText(t, "deploy", "image", "Dockerfile"))
	ignored := strings.Fields(readText(t, "deploy", "image", "Dockerfile.dockerignore"))
	var sources []string
	for _, s := range stages {
		for _, c := range s.Commands {
			if c, isCopy := c.(*instructions.CopyCommand); isCopy && c.From == "" {
				sources = append(sources, c.SourcePaths...)
			}
		}
	}
	if len(sources) < 3 {
		t.Errorf("the build copies %v alone", sources)
	}
	for _, source := range append(sources, compiledFolders(t)...) {
		if _, err := os.Stat(inRoot(source)); err != nil {
			t.Errorf("the build copies %s: %v", source, err)
		}
		for folder := path.Clean(source); folder != "."; folder = path.Dir(folder) {
			if slices.Contains(ignored, folder) {
				t.Errorf("%s is needed, and Dockerfile.dockerignore leaves out %s", source, folder)
			}
		}
	}
	for _, name := range ignored {
		if name != "bin" && name != ".cache" && name != ".git" { // which a clean checkout may lack
			if _, err := os.Stat(inRoot(name)); err != nil {
				t.Errorf("Dockerfile.dockerignore leaves out %s, which does not exist", name)
			}
		}
	}
	module, image := goVersion(t, readText(t, "go.mod"), `(?m)^go (\d+\.\d+)`), goVersion(t, readText(t, "deploy", "image", "Dockerfile"), `golang:(\d+\.\d+)`)
	if module != image {
		t.Errorf("the image is built by Go %s, and the module asks for %s", image, module)
	}
}

// TestImagePolicy checks that the limits of the image are the policy, and that all that the policy
// says and the limits do not is reported: the rule that is not enabled.
func TestImagePolicy(t *testing.T) {
	out, err := runRelease(t, nil, "limits", "import", "rules", inRoot("deploy", "image", "policy.json"))
	if got := readText(t, "deploy", "image", "limits.yaml"); out != got {
		t.Errorf("limits.yaml is not what limits import rules makes of policy.json:\n%s\nwant:\n%s", got, out)
	}
	if err == nil || !strings.Contains(err.Error(), "exit status 2") || strings.Count(err.Error(), "policy.json:") != 1 || !strings.Contains(err.Error(), "exports is not imported: it is not enabled") {
		t.Errorf("the import reports %v", err)
	}
	var rules []map[string]any
	if err := json.Unmarshal([]byte(readText(t, "deploy", "image", "policy.json")), &rules); err != nil {
		t.Fatal(err)
	}
	fields := []string{"capacity", "enabled", "match", "on_fail", "per", "rate", "rule_id"}
	for _, r := range rules {
		if got := slices.Sorted(maps.Keys(r)); !slices.Equal(got, fields) {
			t.Errorf("a rule has %v, want %v", got, fields)
		}
	}
	if _, err := runRelease(t, nil, "limits", "lint", inRoot("deploy", "image", "limits.yaml")); err != nil {
		t.Error(err)
	}
}

// TestImageReader checks that the reader of these tests sees what differs from ours.
func TestImageReader(t *testing.T) {
	made, _ := readDockerfile(t, "FROM scratch\nCOPY a /b\nENV X=1\nUSER 0\nENTRYPOINT [\"/x\"]\nCMD [\"y\"]\nEXPOSE 1\nHEALTHCHECK CMD [\"/x\",\"z\"]\n")
	if made.base != "scratch" || made.user != "0" || made.files["/b"] != "a" || made.variable("X") != "1" || made.command[0] != "y" || made.healthcheck[1] != "z" {
		t.Errorf("read %+v", made)
	}
}

// compiledFolders returns the folders of the repository that the program is compiled of.
func compiledFolders(t *testing.T) (folders []string) {
	t.Helper()
	found := map[string]bool{}
	for _, imported := range goList(t, "-deps", "./cmd/limitgate") {
		if name, own := strings.CutPrefix(imported, "github.com/limitgate/limitgate/"); own {
			found[name] = true
		}
	}
	if len(found) < 10 {
		t.Fatalf("the program is compiled of %d folders", len(found))
	}
	return slices.Sorted(maps.Keys(found))
}

// fileMode returns the mode of a path in a folder.
func fileMode(t *testing.T, folder, name string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}
