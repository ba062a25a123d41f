package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"golang.org/x/term"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awsclient"
	"github.com/limitgate/limitgate/limit"
)

// tableArgs are the inputs of limits diff, push and pull.
type tableArgs struct {
	aws   aws.Config
	table *dynamo.Table
	name  string
	// stderr is where calls that take long are noted.
	stderr io.Writer
	items  map[string]table.Item
	parts  map[string]json.RawMessage // of the file
	// warnings are those of the file.
	warnings []limit.Problem
	// complete lists the kinds of parts that the file defines completely.
	complete []string
	opts     limit.CompileOptions
	// whole makes a push refuse to write if any plan or shared limit differs from the one
	// that was shown.
	whole bool
}

// defaultIPMaxTTL is the value of the setting privacy.ip_max_ttl if none is given.
const defaultIPMaxTTL = time.Hour

// ipMaxTTLFlag adds the flag that limits by address are checked against, which must match
// the setting of the proxies.
func ipMaxTTLFlag(env *environment, fs *flag.FlagSet) *time.Duration {
	return fs.Duration("privacy-ip-max-ttl", env.ipMaxTTL(), "the longest a hashed address may be kept, as proxies have it; otherwise that of LIMITGATE_PRIVACY_IP_MAX_TTL, if set")
}

// ipMaxTTL returns the bound on the time that addresses are kept which the variable of that setting has, or the default.
func (env *environment) ipMaxTTL() time.Duration {
	if ttl, err := time.ParseDuration(env.lookup("LIMITGATE_PRIVACY_IP_MAX_TTL")); err == nil && ttl > 0 {
		return ttl
	}
	return defaultIPMaxTTL
}

// openTableArgs reads the table, and the file unless its path is empty. IPMaxTTL is an
// option of the compilation.
func openTableArgs(ctx context.Context, env *environment, file, name string, ipMaxTTL time.Duration) (t *tableArgs, err error) {
	if name == config.LimitsTablePrefix {
		return nil, config.NoTableName
	}
	t = &tableArgs{name: name, opts: limit.CompileOptions{IPMaxTTL: ipMaxTTL.Microseconds()}}
	if file != "" {
		content, err := readFileOrStdin(env, file)
		if err != nil {
			return nil, err
		}
		if _, t.warnings, err = config.ParseLimits(file, content, t.opts); err != nil {
			return nil, err
		}
		if t.parts, err = config.SplitLimits(file, content); err != nil {
			return nil, err
		}
		if t.complete, err = config.CompleteFor(file, content); err != nil {
			return nil, err
		}
	}
	if t.aws, err = awsclient.Load(ctx); err != nil {
		return nil, err
	}
	t.table = dynamo.NewTable(t.aws, strings.TrimPrefix(name, config.LimitsTablePrefix))
	t.stderr = env.stderr
	t.items, err = t.read(ctx)
	return t, err
}

// openFiles reads two files. The old one takes the place of a table.
func openFiles(_ context.Context, env *environment, old, file string, ipMaxTTL time.Duration) (t *tableArgs, err error) {
	if old == "-" && file == "-" {
		return nil, errors.New("standard input can be one of two files, not both")
	}
	t = &tableArgs{
		name: old, opts: limit.CompileOptions{IPMaxTTL: ipMaxTTL.Microseconds()}, items: map[string]table.Item{},
		complete: []string{config.PartShared, config.PartPlans, config.PartTenants},
	}
	before, err := t.split(env, old)
	if err != nil {
		return nil, ofDiff("OLD", err)
	}
	for key, body := range before {
		t.items[key] = table.Item{Key: key, Body: body}
	}
	t.parts, err = t.split(env, file)
	return t, ofDiff("NEW", err)
}

// ofDiff names the argument that is a file which does not exist.
func ofDiff(argument string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w (%s of limitgate limits diff OLD NEW)", err, argument)
	}
	return err
}

// split reads a valid limits file, and splits it into its parts.
func (t *tableArgs) split(env *environment, file string) (map[string]json.RawMessage, error) {
	content, err := readFileOrStdin(env, file)
	if err != nil {
		return nil, err
	}
	if _, _, err := config.ParseLimits(file, content, t.opts); err != nil {
		return nil, err
	}
	return config.SplitLimits(file, content)
}

// read reads the whole table.
func (t *tableArgs) read(ctx context.Context) (map[string]table.Item, error) {
	defer noteWait(t.stderr, t.name)()
	items, err := t.table.Scan(ctx)
	if err != nil {
		return nil, err
	}
	byKey := make(map[string]table.Item, len(items))
	for _, it := range items {
		byKey[it.Key] = it
	}
	return byKey, nil
}

// changes returns the changes that make the table equal the file, as far as the file is
// complete.
func (t *tableArgs) changes() []table.Change {
	kind := func(key string) string {
		switch {
		case table.IsTenant(key):
			return config.PartTenants
		case table.IsPlan(key):
			return config.PartPlans
		}
		return config.PartShared
	}
	return slices.DeleteFunc(table.Diff(t.items, t.parts), func(c table.Change) bool {
		return (c.After == nil || c.Key == table.KeyShared) && c.Before != nil && !slices.Contains(t.complete, kind(c.Key))
	})
}

func readFileOrStdin(env *environment, path string) ([]byte, error) {
	if path == "-" {
		return config.ReadLimits(env.stdin)
	}
	return config.ReadLimitsFile(path)
}

// isTable reports whether an argument names a table.
func isTable(arg string) bool { return strings.HasPrefix(arg, config.LimitsTablePrefix) }

// tableFirst reports a table and a file in each other's place.
func tableFirst(env *environment, fs *flag.FlagSet) bool {
	swapped := fs.NArg() == 2 && isTable(fs.Arg(0)) && !isTable(fs.Arg(1))
	if swapped {
		fmt.Fprintf(env.stderr, "limitgate %s: the table is the second one: limitgate %[1]s %.64s %.64s\n", fs.Name(), fs.Arg(1), fs.Arg(0))
	}
	return swapped
}

func runDiff(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits diff", limitsAbout("diff"), "limitgate limits diff limits.yaml dynamodb://limits")
	ttl := ipMaxTTLFlag(env, fs)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if tableFirst(env, fs) {
		return exitUsage
	}
	if at := strings.Index(fs.Arg(1), "://"); at >= 0 && !isTable(fs.Arg(1)) {
		fmt.Fprintf(env.stderr, "limitgate limits diff: %.64q is neither a file nor a table: a table is named %sTABLE\n", fs.Arg(1), config.LimitsTablePrefix)
		return exitUsage
	}
	if fs.NArg() > 2 {
		fmt.Fprintf(env.stderr, "limitgate limits diff: %s: limitgate limits diff old.yaml new.yaml\n", missingFlags(fs, 2))
		return exitUsage
	}
	if fs.NArg() != 2 || isTable(fs.Arg(0)) {
		fmt.Fprintln(env.stderr, "limitgate limits diff: two files, or a file and a table, are needed: limitgate limits diff old.yaml new.yaml")
		return exitUsage
	}
	open := openFiles
	if isTable(fs.Arg(1)) {
		open = openTableArgs
	}
	t, err := open(ctx, env, fs.Arg(0), fs.Arg(1), *ttl)
	if err != nil {
		return fail(env, err)
	}
	if other := t.otherItem(); t.table != nil && other != "" {
		fmt.Fprintf(env.stderr, "limitgate limits diff: %s\n", otherTable(t.name, other))
		return exitError
	}
	changes := t.changes()
	t.show(env, changes)
	if len(changes) == 0 {
		return exitOK
	}
	if t.table == nil {
		return exitDenied // both files compile
	}
	if err := t.breaks(t.compiles(t.after(changes))); err != nil {
		printMistakes(env.stderr, "limitgate limits diff: limits push would write nothing:", err)
	}
	return exitDenied
}

func runPull(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits pull", limitsAbout("pull"), "limitgate limits pull dynamodb://limits > limits.yaml")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if wrong := wrongArguments(fs, nil, tableArgument); wrong != "" {
		fmt.Fprintf(env.stderr, "limitgate limits pull: %s: limitgate limits pull dynamodb://TABLE > limits.yaml\n", wrong)
		return exitUsage
	}
	t, err := openTableArgs(ctx, env, "", fs.Arg(0), 0)
	if err != nil {
		return fail(env, err)
	}
	parts := t.live()
	if other := t.otherItem(); other != "" {
		fmt.Fprintf(env.stderr, "limitgate limits pull: %s\n", otherTable(fs.Arg(0), other))
		return exitError
	}
	if len(parts) == 0 {
		fmt.Fprintf(env.stderr, "limitgate limits pull: %s has no limits yet; limitgate limits push limits.yaml %[1]s writes those of a file\n", table.Printable(fs.Arg(0)))
		fmt.Fprintf(env.stdout, "# %s has no limits yet\n", table.Printable(fs.Arg(0)))
	}
	content, err := config.JoinLimits(parts)
	if err != nil {
		return fail(env, err)
	}
	code := exitOK
	for _, key := range slices.Sorted(maps.Keys(t.items)) {
		it := t.items[key]
		if flaw := it.Flaw(); flaw != "" && table.IsPart(key) {
			fmt.Fprintf(env.stdout, "# %s is not here, and proxies ignore it: %s\n", table.Printable(key), flaw)
			fmt.Fprintf(env.stderr, "limitgate limits pull: proxies ignore %s: %s\n", table.Printable(key), flaw)
			code = exitError
		}
	}
	for _, line := range t.ignoredItems() {
		fmt.Fprintf(env.stdout, "# %s\n", line)
	}
	if len(parts) > 0 {
		_, _ = env.stdout.Write(content)
		if err := t.compiles(parts); err != nil {
			printMistakes(env.stderr, "limitgate limits pull: "+t.name+" has items that proxies cannot use:", err)
			return exitError
		}
	}
	return code
}

// caller returns the name that AWS has for the caller of its API.
func caller(ctx context.Context, env *environment, config aws.Config) (string, error) {
	defer noteWait(env.stderr, "the name of the caller")()
	who, err := sts.NewFromConfig(config).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", fmt.Errorf("find out who writes (or set --actor): %w", err)
	}
	return aws.ToString(who.Arn), nil
}

// itemProgress shows on a terminal how many items are written.
type itemProgress struct {
	w     io.Writer // nil if the output is no terminal
	total int
	mu    sync.Mutex // guards done
	done  int
}

func newItemProgress(w io.Writer, total int) *itemProgress {
	p := &itemProgress{total: total}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.w = w
	}
	return p
}

func (p *itemProgress) add() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if p.w != nil {
		const width = 40
		full := width * p.done / p.total
		fmt.Fprintf(p.w, "\r[%s%s] %d of %d items", strings.Repeat("#", full), strings.Repeat(" ", width-full), p.done, p.total)
	}
}

func (p *itemProgress) finish() {
	if p.w != nil {
		fmt.Fprintln(p.w)
	}
}

// mostLoosened bounds the loosened limits that are printed.
const mostLoosened = 20

// printLoosened prints the limits that changes loosen.
func printLoosened(w io.Writer, lines []string, colour bool) {
	if len(lines) == 0 {
		return
	}
	begin, end := "", ""
	if colour {
		begin, end = "\x1b[33m", "\x1b[0m"
	}
	fmt.Fprintf(w, "%sThis loosens limits, or may:%s\n", begin, end)
	for i, line := range lines {
		if i == mostLoosened {
			fmt.Fprintf(w, "%s  ... and %d more%s\n", begin, len(lines)-i, end)
			break
		}
		fmt.Fprintf(w, "%s  %s%s\n", begin, line, end)
	}
	fmt.Fprintln(w)
}

// printChanges prints each change line by line.
func printChanges(w io.Writer, changes []table.Change, colour bool) {
	paint := func(code, text string) string {
		if !colour {
			return text
		}
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	for i := range changes {
		c := &changes[i]
		by := ""
		var before []string
		if c.Before != nil {
			if c.Before.Version > 0 { // of a table
				by = fmt.Sprintf(", version %d by %s", c.Before.Version, table.Printable(cmp.Or(c.Before.Actor, "unknown")))
			}
			before = config.PartLines(c.Before.Body)
		}
		after := config.PartLines(c.After)
		fmt.Fprintf(w, "%s\n", paint("1", c.Kind()+" "+table.Printable(c.Key)+by))
		gone, come := without(before, after), without(after, before)
		for _, line := range gone {
			fmt.Fprintf(w, "%s\n", paint("31", "  - "+line))
		}
		for _, line := range come {
			fmt.Fprintf(w, "%s\n", paint("32", "  + "+line))
		}
		if len(gone)+len(come) == 0 {
			var body json.RawMessage
			if c.Before != nil {
				body = c.Before.Body
			}
			for _, difference := range table.Differences(body, c.After) {
				fmt.Fprintf(w, "  %s\n", difference)
			}
		}
	}
	if len(changes) == 0 {
		fmt.Fprintln(w, "no difference")
	}
}

// without returns the lines of a that are not in b.
func without(a, b []string) (rest []string) {
	there := map[string]bool{}
	for _, line := range b {
		there[line] = true
	}
	for _, line := range a {
		if !there[line] {
			rest = append(rest, line)
		}
	}
	return rest
}
