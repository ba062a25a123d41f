package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// envoyConfig is the configuration of a folder of envoyproxy/ratelimit. The Config is nil if the
// files have mistakes.
type envoyConfig struct {
	*rlsconfig.Config
	folder string
	files  int
}

// place returns a line of a file as FILE:LINE, from the folder on.
func (c *envoyConfig) place(file string, line int) string {
	if name, err := filepath.Rel(c.folder, file); err == nil {
		file = name
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// isFolder reports whether a path is a folder, which has limits of Envoy.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isEnvoys reports whether a path is a file of Envoy's limits, whose folder is read.
func isEnvoys(path string) bool {
	if path == "-" {
		return false
	}
	content, err := config.ReadLimitsFile(path)
	return err == nil && config.IsEnvoys(content)
}

// folderFlags are the flags of serve about the files of a folder.
type folderFlags struct {
	merge      bool
	extensions string
}

// folderFlagNames are the flags of folderFlags.
var folderFlagNames = []string{"rls-merge-domains", "rls-extensions"}

func (f *folderFlags) define(fs *flag.FlagSet) {
	f.defineMerge(fs)
	fs.StringVar(&f.extensions, "rls-extensions", "", "of a folder: the `file` of what its limits have beside their files")
}

func (f *folderFlags) defineMerge(fs *flag.FlagSet) {
	fs.BoolVar(&f.merge, "rls-merge-domains", false, "of a folder: several files may describe one domain")
}

// checkFolderFlags reports flags that have no effect: those of folders if path is a limits file, and
// all others if it is a folder, but for those of addresses and --shadow, which are for both.
func checkFolderFlags(env *environment, fs *flag.FlagSet, path string, ofFolders ...string) (code int, done bool) {
	folder := isFolder(path)
	fs.Visit(func(f *flag.Flag) {
		if done || strings.HasPrefix(f.Name, "privacy-") || f.Name == "shadow" || slices.Contains(ofFolders, f.Name) == folder {
			return
		}
		what := "a limits file: it belongs to a folder of Envoy's limits"
		if folder {
			what = "a folder of Envoy's limits: it belongs to a limits file"
		}
		fmt.Fprintf(env.stderr, "limitgate %s: --%s has no effect on %s\n", fs.Name(), f.Name, what)
		code, done = exitUsage, true
	})
	return code, done
}

// readEnvoy reads a folder of envoyproxy/ratelimit.
func readEnvoy(path string, flags folderFlags) (envoyConfig, rlsconfig.Problems, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return envoyConfig{}, nil, fmt.Errorf("there is no folder %s", config.Quote(path))
	}
	files, err := rlsconfig.ReadDir(path)
	if err != nil && !isFolder(path) {
		return envoyConfig{}, nil, err
	}
	if err != nil {
		return envoyConfig{}, nil, fmt.Errorf("%s is a folder, and a folder of Envoy's limits has YAML files alone; a limits file is one file (%w)", path, err)
	}
	if len(files) == 0 {
		return envoyConfig{}, nil, errors.New(path + " has no files: write the limits of a domain into one, domain: NAME and descriptors")
	}
	if others := othersIn(path, files); len(others) > 0 {
		return envoyConfig{}, nil, fmt.Errorf("%s is a folder, which is read as Envoy's limits, and has none: %s", path, strings.Join(others, ", "))
	}
	content, err := rlsconfig.ReadExtensions(flags.extensions)
	if err != nil {
		return envoyConfig{}, nil, err
	}
	opts, err := rlsconfig.Options{MergeDomains: flags.merge}.WithExtensions(flags.extensions, content)
	if err != nil {
		return envoyConfig{}, nil, err
	}
	c, problems := rlsconfig.Parse(files, opts)
	return envoyConfig{c, path, len(files)}, problems, nil
}

// maxOthers bounds the files of other kinds that an error names.
const maxOthers = 3

// othersIn describes files of other kinds that stand in a folder, none of whose own files is one of Envoy's limits.
func othersIn(path string, files []rlsconfig.File) (others []string) {
	for _, f := range files {
		if filepath.Dir(f.Name) != filepath.Clean(path) {
			continue
		}
		if config.IsEnvoys(f.Content) {
			return nil
		}
		if kind, command := config.KindOf(f.Content); kind != "" && len(others) < maxOthers {
			others = append(others, fmt.Sprintf("%s is %s (limitgate %s %[1]s)", f.Name, kind, command))
		}
	}
	return others
}

// lintEnvoy lists the mistakes and the warnings of a folder, and its limits.
func lintEnvoy(env *environment, path string, flags folderFlags) int {
	c, problems, err := readEnvoy(path, flags)
	if err != nil {
		return fail(env, err)
	}
	for _, p := range problems {
		warning := ""
		if p.Warning {
			warning = " (warning)"
		}
		fmt.Fprintf(env.stderr, "%s%s\n", p, warning)
	}
	if problems.Err() != nil {
		return exitError
	}
	fmt.Fprintf(env.stdout, "%s in %s, %s\n", table.Counted(len(c.Limited()), "limit"), table.Counted(len(c.Domains()), "domain"), table.Counted(c.files, "file"))
	printEnvoyLimits(env.stdout, c)
	return exitOK
}

func printEnvoyLimits(w io.Writer, c envoyConfig) {
	rows := [][]string{{"DOMAIN", "RULE", "LIMIT", "MODE", "COUNTERS", "FROM"}}
	for _, name := range c.Domains() {
		var list func(above, level []*rlsconfig.Descriptor)
		list = func(above, level []*rlsconfig.Descriptor) {
			for _, d := range level {
				levels := append(above[:len(above):len(above)], d)
				if r := d.Rule; r != nil {
					rows = append(rows, []string{name, r.Path, limitOf(r), modeOf(r), countersOf(r, levels), c.place(r.File, r.Line)})
				}
				list(levels, d.Below)
			}
		}
		list(nil, c.Domain(name).Descriptors())
	}
	printColumns(w, rows)
}

// limitOf returns the limit of a rule, such as 10 per minute.
func limitOf(r *rlsconfig.Rule) string {
	if r.Limit == nil || r.Limit.Unlimited {
		return "unlimited"
	}
	text := fmt.Sprintf("%d per %s", r.Limit.RequestsPerUnit, strings.ToLower(r.Limit.Unit.String()))
	if r.Own.Limit != nil {
		text += ofExtension(r.Own.Limit)
	}
	switch r.OnDenied {
	case rlsconfig.OnDeniedNothing:
		text += ", takes nothing of denied requests"
	case rlsconfig.OnDeniedCount:
		text += ", counts denied requests"
	}
	for _, also := range r.Also {
		text += "; " + also.Name + " " + also.Limit.Rate.Text + ofExtension(also.Limit)
	}
	return text
}

// ofExtension describes how a limit differs from those of envoyproxy/ratelimit.
func ofExtension(l *limit.Limit) (text string) {
	switch l.Params.Algorithm {
	case bucket.AlgorithmFixedWindow:
	case bucket.AlgorithmCalendarWindow:
		text += ", calendar of " + l.Zone.String()
	default:
		text += ", " + l.Params.Algorithm.String()
	}
	if l.Params.Capacity != l.Rate.Count {
		text += fmt.Sprintf(", burst %d", l.Params.Capacity)
	}
	if l.OnError == limit.OnErrorClosed {
		text += ", fails closed"
	}
	if l.Lease.On {
		text += ", lease " + l.Lease.String()
	}
	return text
}

// modeOf returns how a rule takes part in decisions.
func modeOf(r *rlsconfig.Rule) string {
	switch {
	case !isLimited(r):
		return "-"
	case r.Shadow:
		return "shadow"
	case r.Quota:
		return "quota"
	default:
		return "enforce"
	}
}

// isLimited reports whether requests that meet a rule are counted.
func isLimited(r *rlsconfig.Rule) bool { return r != nil && r.Limit != nil && !r.Limit.Unlimited }

// countersOf returns how many counters a rule has.
func countersOf(r *rlsconfig.Rule, levels []*rlsconfig.Descriptor) string {
	if !isLimited(r) || r.Limit.RequestsPerUnit == 0 {
		return "none"
	}
	var keys []string
	for _, d := range levels {
		if d.Value == "" || d.Pattern && !d.Shared {
			keys = append(keys, d.Key)
		}
	}
	if keys == nil {
		return "one"
	}
	return "one for each " + strings.Join(keys, " and ")
}
