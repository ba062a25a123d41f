package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// pushWriters is how many items are written at the same time.
const pushWriters = 8

// mostUnsummed is the largest number of changes that needs no summary before the
// question: that many fit a screen.
const mostUnsummed = 8

// pushOptions are the flags of a command that writes.
type pushOptions struct {
	yes     bool
	actor   string
	removes int
}

func runPush(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits push", limitsAbout("push"), "limitgate limits push limits.yaml dynamodb://limits")
	ttl := ipMaxTTLFlag(env, fs)
	var o pushOptions
	fs.BoolVar(&o.yes, "yes", false, "write without asking")
	fs.StringVar(&o.actor, "actor", "", "`name` of who changes this; the caller that AWS knows unless given")
	fs.IntVar(&o.removes, "removes", 0, "remove at most this `number` of items, where that is much: the refusal names it")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if tableFirst(env, fs) {
		return exitUsage
	}
	if wrong := wrongArguments(fs, nil, "file", tableArgument); wrong != "" {
		fmt.Fprintf(env.stderr, "limitgate limits push: %s: limitgate limits push limits.yaml dynamodb://TABLE\n", wrong)
		return exitUsage
	}
	t, err := openTableArgs(ctx, env, fs.Arg(0), fs.Arg(1), *ttl)
	if err != nil {
		return fail(env, err)
	}
	printProblems(env.stderr, fs.Arg(0), t.warnings)
	if other := t.otherItem(); other != "" {
		fmt.Fprintf(env.stderr, "limitgate limits push: nothing is written: %s\n", otherTable(t.name, other))
		return exitError
	}
	changes := t.changes()
	if r := table.RemovalOf(t.items, changes); r.IsLarge() && r.Count() > o.removes {
		t.show(env, changes)
		fmt.Fprintf(env.stderr, "limitgate limits push: nothing is written: the file would remove %s; if that is meant, say --removes %d\n", &r, r.Count())
		return exitError
	}
	return t.apply(ctx, env, changes, o)
}

// otherTable describes a table that has items and no limits, one of which is named.
func otherTable(name, item string) string {
	return fmt.Sprintf("%s has no limits and other items, such as %s: name the table of limits, which is not that of --leases", table.Printable(name), config.Quote(item))
}

// otherItem returns the key of an item of a table that has items and no limits, or "".
func (t *tableArgs) otherItem() string { return otherKey(slices.Collect(maps.Values(t.items))) }

// otherKey does the same for the items of a table.
func otherKey(items []table.Item) string {
	if len(items) == 0 || hasLimits(items) {
		return ""
	}
	return slices.MinFunc(items, func(a, b table.Item) int { return strings.Compare(a.Key, b.Key) }).Key
}

// apply shows changes, asks for confirmation unless o.yes is set, and writes them.
func (t *tableArgs) apply(ctx context.Context, env *environment, changes []table.Change, o pushOptions) (code int) {
	t.show(env, changes)
	if len(changes) == 0 {
		return exitOK
	}
	if !o.yes && !t.confirmed(env, changes) {
		fmt.Fprintln(env.stderr, "limitgate limits: nothing is written, because the answer is not y; --yes writes without asking")
		return exitError
	}
	if o.actor == "" {
		var err error
		if o.actor, err = caller(ctx, env, t.aws); err != nil {
			return fail(env, err)
		}
	}
	if err := t.push(ctx, env, changes, o.actor); err != nil {
		return fail(env, err)
	}
	fmt.Fprintf(env.stdout, "%s written to %s by %s\n", table.Counted(len(changes), "item"), t.name, o.actor)
	return exitOK
}

// confirmed asks whether to write. Before the question it summarizes many changes, whose
// first lines have left the screen.
func (t *tableArgs) confirmed(env *environment, changes []table.Change) bool {
	if len(changes) > mostUnsummed {
		kinds := map[string]int{}
		for i := range changes {
			kinds[changes[i].Kind()]++
		}
		loosened, _ := t.loosened(changes)
		fmt.Fprintf(env.stdout, "%d to add, %d to change, %d to delete; %s loosened, or may be: the first lines name them\n",
			kinds["add"], kinds["change"], kinds["delete"], areOrIs(len(loosened), "limit"))
	}
	if len(changes) == 1 {
		return asked(env, "Write this item?")
	}
	return asked(env, fmt.Sprintf("Write these %d items?", len(changes)))
}

// areOrIs returns a number of things with its verb: 1 limit is, 2 limits are.
func areOrIs(n int, thing string) string {
	if n == 1 {
		return "1 " + thing + " is"
	}
	return table.Counted(n, thing) + " are"
}

// asked asks a question, and reports whether the answer is yes.
func asked(env *environment, question string) bool {
	fmt.Fprintf(env.stdout, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(env.stdin).ReadString('\n')
	return strings.EqualFold(strings.TrimSpace(answer), "y") || strings.EqualFold(strings.TrimSpace(answer), "yes")
}

// show prints changes after the limits that they loosen, and names the items that stay
// although the file differs.
func (t *tableArgs) show(env *environment, changes []table.Change) {
	if shared, ok := t.parts[table.KeyShared]; ok && !slices.Contains(t.complete, config.PartShared) {
		if it := t.items[table.KeyShared]; it.IsLimits() && !it.Deleted && !table.Equal(it.Body, shared) {
			fmt.Fprintf(env.stdout, "%s differs and stays: the file is not complete_for %s\n", table.KeyShared, config.PartShared)
		}
	}
	for _, line := range append(t.ignoredItems(), t.flawedItems()...) {
		fmt.Fprintf(env.stderr, "limitgate limits: %s: %s\n", t.name, line)
	}
	loosened, unusable := t.loosened(changes)
	if unusable != nil && len(t.live()) > 0 {
		printMistakes(env.stderr, "limitgate limits: "+t.name+" has items that proxies cannot use, and the comparison is without them:", unusable)
	}
	printLoosened(env.stdout, loosened, env.coloured())
	if t.table == nil {
		changes = slices.Clone(changes)
		for i := range changes {
			changes[i].Key = ofFile(changes[i].Key)
		}
	}
	printChanges(env.stdout, changes, env.coloured())
}

// ofFile returns the name of a part of a file, in which the keys of a table do not occur.
func ofFile(key string) string {
	switch {
	case table.IsPlan(key):
		return "plan " + table.Name(key)
	case table.IsTenant(key):
		return "tenant " + table.Name(key)
	}
	return config.PartShared
}

// loosened returns a line for each limit that changes loosen, of the items that proxies can use; none if there are no limits
// before, or these cannot be used. Unusable is the error of the items before that cannot.
func (t *tableArgs) loosened(changes []table.Change) (lines []string, unusable error) {
	before, unusable := t.proxied(t.live())
	after, _ := t.proxied(t.after(changes))
	if before == nil || after == nil {
		return nil, unusable
	}
	var tenants []string
	for i := range changes {
		if table.IsTenant(changes[i].Key) {
			tenants = append(tenants, table.Name(changes[i].Key))
		}
	}
	return limit.Loosened(before, after, tenants), unusable
}

// after returns the bodies of the table's items after changes.
func (t *tableArgs) after(changes []table.Change) map[string]json.RawMessage {
	parts := t.live()
	for _, c := range changes {
		if delete(parts, c.Key); c.After != nil && table.IsPart(c.Key) {
			parts[c.Key] = c.After
		}
	}
	return parts
}

// push writes changes. It writes those of one kind concurrently, each on the version that
// was shown, and finishes a kind before it starts the next, which may need it. It reads
// the table again before and after that, because other writers may have made these items
// unusable. An interrupt stops it between two items.
func (t *tableArgs) push(ctx context.Context, env *environment, changes []table.Change, actor string) error {
	if len(changes) == 0 {
		return nil
	}
	stopped, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	usable, err := t.recheck(stopped, changes)
	if stopped.Err() != nil {
		return errors.New("interrupted; nothing is written")
	}
	if err != nil {
		return err
	}
	w := &itemWriter{tableArgs: t, actor: actor, stopped: stopped, progress: newItemProgress(env.stderr, len(changes))}
	for _, turn := range table.Turns(changes) {
		if err = w.turn(ctx, turn); err != nil {
			break
		}
	}
	w.progress.finish()
	if err != nil {
		return fmt.Errorf("%d of %d items are written: %w", w.progress.done, len(changes), err)
	}
	if usable {
		return t.verify(ctx, actor)
	}
	return nil
}

// recheck reads the table again. It returns an error if an item to be changed is not the
// one that was shown, or if limits that compile would not compile with the changes.
// Usable reports whether they compile.
func (t *tableArgs) recheck(ctx context.Context, changes []table.Change) (usable bool, err error) {
	items, err := t.read(ctx)
	if err != nil {
		return false, err
	}
	for _, c := range changes {
		if now, was := items[c.Key], t.items[c.Key]; !table.Same(&now, &was) || now.InvalidVersion != was.InvalidVersion {
			return false, fmt.Errorf("%w; nothing is written, look at the difference again", conflict(now, c.Key))
		}
	}
	for key, now := range items {
		if was := t.items[key]; t.whole && table.IsPart(key) && !table.IsTenant(key) && !table.Same(&now, &was) {
			return false, fmt.Errorf("%w; nothing is written, look at the difference again", conflict(now, key))
		}
	}
	t.items = items
	broken := t.compiles(t.after(changes))
	if added := t.breaks(broken); added != nil {
		return false, fmt.Errorf("nothing is written: %w", added)
	}
	return broken == nil, nil
}

// breaks returns an error if limits have mistakes that those of the table do not have. Broken is the error of compiling them.
func (t *tableArgs) breaks(broken error) error {
	if broken == nil {
		return nil
	}
	if added := newMistakes(t.compiles(t.live()), broken); added != nil {
		return fmt.Errorf("the limits of the table would be invalid: %w", added)
	}
	return nil
}

// conflict returns an ErrConflict with the current version and actor of an item.
func conflict(now table.Item, key string) error {
	return fmt.Errorf("%w: %s is version %d now, by %s at %s", dynamo.ErrConflict, table.Printable(key), now.Version, table.Printable(now.Actor), now.At.Format(time.RFC3339))
}

// verify reads the table, and returns an error if its limits no longer compile, because
// items that need each other were written concurrently. If plans that existed before are
// missing, it writes them again.
func (t *tableArgs) verify(ctx context.Context, actor string) error {
	before := t.items
	items, err := t.read(ctx)
	if err != nil {
		return fmt.Errorf("all items are written, but could not be verified: %w", err)
	}
	t.items = items
	broken := t.compiles(t.live())
	if broken == nil {
		return nil
	}
	parts := t.live()
	var missing []table.Change
	for key, was := range before {
		if table.IsPlan(key) && was.IsLimits() && !was.Deleted && items[key].Deleted {
			missing, parts[key] = append(missing, table.Change{Key: key, After: was.Body}), was.Body
		}
	}
	if len(missing) == 0 || t.compiles(parts) != nil {
		return fmt.Errorf("all items are written, but others were written at the same time, and the limits are invalid now: %w", broken)
	}
	var restored []string
	for _, c := range missing {
		if err := t.write(ctx, c, actor); err != nil {
			return fmt.Errorf("%w; not all plans that were deleted at the same time could be written again: %w", broken, err)
		}
		restored = append(restored, table.Printable(c.Key))
	}
	return fmt.Errorf("other items were written at the same time, so %s was written again: %w", strings.Join(restored, ", "), broken)
}

// itemWriter writes items.
type itemWriter struct {
	*tableArgs
	actor    string
	stopped  context.Context // ends when no more items are to be written
	progress *itemProgress
}

// errInterrupted is returned for a push that a signal stopped.
var errInterrupted = errors.New("interrupted; the same command writes the others")

// turn writes changes concurrently. After a failure it starts no more writes, and waits
// for those in progress, so that their outcome is known.
func (w *itemWriter) turn(ctx context.Context, changes []table.Change) error {
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
				if errs[i] = w.write(ctx, c, w.actor); errs[i] != nil {
					failed.Store(true)
					continue
				}
				w.progress.add()
			}
		})
	}
	interrupted := false
	for _, c := range changes {
		if interrupted = w.stopped.Err() != nil; interrupted {
			break
		}
		work <- c
	}
	close(work)
	wg.Wait()
	if interrupted {
		errs = append(errs, errInterrupted)
	}
	return cmp.Or(errs...) // the other errors report the same for other items
}

// write writes one change. The error of a conflict names the actor of the current
// version.
func (t *tableArgs) write(ctx context.Context, c table.Change, actor string) error {
	it := table.Item{Key: c.Key, Version: t.items[c.Key].Version, InvalidVersion: t.items[c.Key].InvalidVersion, Actor: actor, At: time.Now().UTC(), Body: c.After, Deleted: c.After == nil}
	_, err := t.table.Put(ctx, it)
	if !errors.Is(err, dynamo.ErrConflict) {
		return err
	}
	now, ok, getErr := t.table.Get(ctx, c.Key)
	if getErr != nil || !ok {
		return err
	}
	return fmt.Errorf("%w; what was written before stays, look at the difference again", conflict(now, c.Key))
}
