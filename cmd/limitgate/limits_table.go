package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/dynamo"
	"github.com/limitgate/limitgate/internal/accesslog"
	"github.com/limitgate/limitgate/internal/awsclient"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/table"
)

// pushWriters is how many items are written at the same time.
const pushWriters = 8

// tableArgs are what limits diff, push and pull work on.
type tableArgs struct {
	aws   aws.Config
	table *dynamo.Table
	name  string
	items map[string]table.Item
	parts map[string]json.RawMessage // of the file
	opts  limit.CompileOptions
}

// ipMaxTTLFlag adds what limits of addresses are checked against: what proxies have.
func ipMaxTTLFlag(fs *flag.FlagSet) *time.Duration {
	return fs.Duration("privacy-ip-max-ttl", time.Hour, "the longest a hashed address may be kept, as proxies have it")
}

// openTableArgs reads the table, and the file unless its path is empty. IPMaxTTL is for
// limits that are compiled.
func openTableArgs(ctx context.Context, env *environment, file, name string, ipMaxTTL time.Duration) (t *tableArgs, err error) {
	t = &tableArgs{name: name, items: map[string]table.Item{}, opts: limit.CompileOptions{IPMaxTTL: ipMaxTTL.Microseconds()}}
	if file != "" {
		content, err := readFileOrStdin(env, file)
		if err != nil {
			return nil, err
		}
		if _, _, err := config.ParseLimits(file, content, t.opts); err != nil {
			return nil, err
		}
		if t.parts, err = config.SplitLimits(file, content); err != nil {
			return nil, err
		}
	}
	if t.aws, err = awsclient.Load(ctx); err != nil {
		return nil, err
	}
	t.table = dynamo.NewTable(t.aws, strings.TrimPrefix(name, config.LimitsTablePrefix))
	items, err := t.table.Scan(ctx)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		t.items[it.Key] = it
	}
	return t, nil
}

func readFileOrStdin(env *environment, path string) ([]byte, error) {
	if path == "-" {
		return config.ReadLimits(env.stdin)
	}
	return config.ReadLimitsFile(path)
}

// isTable reports whether an argument names a table.
func isTable(arg string) bool { return strings.HasPrefix(arg, config.LimitsTablePrefix) }

const tableUsage = "a file and a table are needed: limitgate limits %s limits.yaml dynamodb://TABLE\n"

func runDiff(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits diff", limitsAbout, "limitgate limits diff limits.yaml dynamodb://limits")
	ttl := ipMaxTTLFlag(fs)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if fs.NArg() != 2 || !isTable(fs.Arg(1)) {
		fmt.Fprintf(env.stderr, "limitgate limits diff: "+tableUsage, "diff")
		return exitUsage
	}
	t, err := openTableArgs(ctx, env, fs.Arg(0), fs.Arg(1), *ttl)
	if err != nil {
		return fail(env, err)
	}
	changes := table.Diff(t.items, t.parts)
	printChanges(env.stdout, changes, env.coloured())
	if len(changes) > 0 {
		return exitDenied
	}
	return exitOK
}

func runPull(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits pull", limitsAbout, "limitgate limits pull dynamodb://limits > limits.yaml")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if fs.NArg() != 1 || !isTable(fs.Arg(0)) {
		fmt.Fprintln(env.stderr, "limitgate limits pull: a table is needed: limitgate limits pull dynamodb://TABLE > limits.yaml")
		return exitUsage
	}
	t, err := openTableArgs(ctx, env, "", fs.Arg(0), 0)
	if err != nil {
		return fail(env, err)
	}
	content, err := config.JoinLimits(t.live())
	if err != nil {
		return fail(env, err)
	}
	_, _ = env.stdout.Write(content)
	return exitOK
}

func runPush(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits push", limitsAbout, "limitgate limits push limits.yaml dynamodb://limits")
	ttl := ipMaxTTLFlag(fs)
	yes := fs.Bool("yes", false, "write without asking")
	actor := fs.String("actor", "", "`name` of who changes this; the caller that AWS knows unless given")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if fs.NArg() != 2 || !isTable(fs.Arg(1)) {
		fmt.Fprintf(env.stderr, "limitgate limits push: "+tableUsage, "push")
		return exitUsage
	}
	t, err := openTableArgs(ctx, env, fs.Arg(0), fs.Arg(1), *ttl)
	if err != nil {
		return fail(env, err)
	}
	return t.apply(ctx, env, table.Diff(t.items, t.parts), *yes, *actor)
}

// apply shows changes, asks unless yes is set, and writes them.
func (t *tableArgs) apply(ctx context.Context, env *environment, changes []table.Change, yes bool, actor string) (code int) {
	printChanges(env.stdout, changes, env.coloured())
	if len(changes) == 0 {
		return exitOK
	}
	if !yes && !confirmed(env, len(changes)) {
		fmt.Fprintln(env.stderr, "limitgate limits: nothing is written")
		return exitError
	}
	if actor == "" {
		var err error
		if actor, err = caller(ctx, t.aws); err != nil {
			return fail(env, err)
		}
	}
	if err := t.push(ctx, env, changes, actor); err != nil {
		return fail(env, err)
	}
	written := fmt.Sprintf("%d items", len(changes))
	if len(changes) == 1 {
		written = "1 item"
	}
	fmt.Fprintf(env.stdout, "%s written to %s by %s\n", written, t.name, actor)
	return exitOK
}

// confirmed asks whether to write.
func confirmed(env *environment, n int) bool {
	return asked(env, fmt.Sprintf("Write these %d items?", n))
}

// asked asks a question, and reports whether the answer is yes.
func asked(env *environment, question string) bool {
	fmt.Fprintf(env.stdout, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(env.stdin).ReadString('\n')
	return strings.EqualFold(strings.TrimSpace(answer), "y") || strings.EqualFold(strings.TrimSpace(answer), "yes")
}

// caller returns the name that AWS has for who asks.
func caller(ctx context.Context, config aws.Config) (string, error) {
	who, err := sts.NewFromConfig(config).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", fmt.Errorf("find out who writes (--actor says it, too): %w", err)
	}
	return aws.ToString(who.Arn), nil
}

// push writes changes, those of a kind at the same time, and each on the version that was
// read. A kind is done before the next begins: it may need what comes before it.
func (t *tableArgs) push(ctx context.Context, env *environment, changes []table.Change, actor string) error {
	progress := newItemProgress(env.stderr, len(changes))
	defer progress.finish()
	for _, turn := range table.Turns(changes) {
		if err := t.pushTurn(ctx, turn, actor, progress); err != nil {
			return err
		}
	}
	return nil
}

// pushTurn writes changes at the same time. After a failure it begins no other one, and
// leaves those that are on their way: nobody would know what became of them.
func (t *tableArgs) pushTurn(ctx context.Context, changes []table.Change, actor string, progress *itemProgress) error {
	work := make(chan table.Change)
	errs := make([]error, pushWriters)
	var failed atomic.Bool
	var wg sync.WaitGroup
	for i := range pushWriters {
		wg.Go(func() {
			for c := range work {
				if failed.Load() {
					continue
				}
				if errs[i] = t.write(ctx, c, actor); errs[i] != nil {
					failed.Store(true)
					continue
				}
				progress.add()
			}
		})
	}
	for _, c := range changes {
		work <- c
	}
	close(work)
	wg.Wait()
	return errors.Join(errs...)
}

// itemProgress shows on a terminal how many items are written.
type itemProgress struct {
	w     io.Writer // nil where nobody looks
	total int
	mu    sync.Mutex // guards done
	done  int
}

func newItemProgress(w io.Writer, total int) *itemProgress {
	p := &itemProgress{total: total}
	if f, ok := w.(*os.File); ok && accesslog.IsTerminal(f) {
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

// write writes one change. Whoever was late is told what has changed.
func (t *tableArgs) write(ctx context.Context, c table.Change, actor string) error {
	it := table.Item{Key: c.Key, Version: t.items[c.Key].Version, Odd: t.items[c.Key].Odd, Actor: actor, At: time.Now().UTC(), Body: c.After, Deleted: c.After == nil}
	_, err := t.table.Put(ctx, it)
	if !errors.Is(err, dynamo.ErrConflict) {
		return err
	}
	now, ok, getErr := t.table.Get(ctx, c.Key)
	if getErr != nil || !ok {
		return err
	}
	return fmt.Errorf("%w: %s is version %d now, by %s at %s; what was written before stays, look at the difference again", err, table.Printable(c.Key), now.Version, table.Printable(now.Actor), now.At.Format(time.RFC3339))
}

// printChanges prints what becomes of each item, line by line.
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
			by = fmt.Sprintf(", version %d by %s", c.Before.Version, table.Printable(c.Before.Actor))
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
			for _, difference := range table.Differences(c.Before.Body, c.After) {
				fmt.Fprintf(w, "  %s\n", difference)
			}
		}
	}
	if len(changes) == 0 {
		fmt.Fprintln(w, "no difference")
	}
}

// without returns the lines of a that b does not have.
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
