package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/controlplane/catalog"
	limits "github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

const (
	// cellTick is the interval at which one proxy of every cell takes all available
	// units.
	cellTick = 50_000
	// beatEvery and beatLeast are those of a proxy and of the registry, and lookEvery is
	// the interval at which the control plane reads the registry.
	beatEvery = 10 * second
	beatLeast = 5 * second
	lookEvery = 2 * second
	// proxiesOfCell share one store, and receive changes separately.
	proxiesOfCell = 2
)

// Limits that cells share. In ten seconds they admit 101,000, 100,000 and 1000 units.
const (
	bucketLimit = `{"id": "n", "by": ["tenant"], "rate": "10000/s", "burst": 1000}`
	windowLimit = `{"id": "n", "by": ["tenant"], "rate": "100000/10s", "algorithm": "fixed_window"}`
	logLimit    = `{"id": "n", "by": ["tenant"], "rate": "1000/10s", "algorithm": "sliding_log"}`
)

// epochOfCells is the start of a run.
var epochOfCells = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

// cellsRun is cells that share a limit, and the control plane that publishes the list of
// cells. It is also the registry and the table of limits.
type cellsRun struct {
	schedule
	tb       testing.TB
	now      int64
	epoch    time.Time
	random   *rand.Rand
	slowest  int64 // maximum delay of a message
	file     []limits.Item
	known    map[string]limits.RegisteredCell
	set      limits.Item // the list of cells
	cells    []*simulatedCell
	global   bucket.Params
	admitted []int64 // until each tick and in it
	// parts are the parts of the limit with which the cells' buckets were used, tick by
	// tick.
	parts [][]float64
}

// simulatedCell is a store and the proxies before it.
type simulatedCell struct {
	id      string
	weight  int64
	store   storeOfCell
	proxies []*proxyOfCell
	cut     bool    // receives nothing from outside, and its messages are lost
	mute    bool    // its messages are lost
	idle    bool    // gets no requests
	stored  float64 // the part with which its bucket was used last
}

// proxyOfCell is a proxy's state of the limits.
type proxyOfCell struct {
	*catalog.Catalog
	version int64   // of the item from which part was computed
	part    float64 // of each limit
}

// newCells returns cells that share a limit and have received the list of cells.
func newCells(tb testing.TB, seed uint64, rule string, weights []int64) *cellsRun {
	tb.Helper()
	r := newStrangers(tb, seed, rule, weights)
	r.introduce()
	return r
}

// introduce sends the list of cells to all of them, and starts the control plane.
func (r *cellsRun) introduce() {
	r.look()
	for _, c := range r.cells {
		for _, p := range c.proxies {
			p.Apply([]limits.Item{r.set})
		}
	}
	r.beginLooking(r.random.Int64N(lookEvery))
}

// newStrangers returns cells that have not received the list of cells.
func newStrangers(tb testing.TB, seed uint64, rule string, weights []int64) *cellsRun {
	tb.Helper()
	r := &cellsRun{
		tb: tb, random: rand.New(rand.NewPCG(seed, 5)), slowest: second, known: map[string]limits.RegisteredCell{},
		epoch: epochOfCells,
		file: []limits.Item{
			written(limits.KeyShared, `{"version": 1, "default_plan": "p"}`),
			written(limits.PrefixPlan+"p", "["+rule+"]"),
		},
		set: limits.Item{Key: limits.KeyCells},
	}
	r.global = r.load("", 0).Set().TenantLimits("t")[0].Params
	for _, weight := range weights {
		r.join(weight)
	}
	return r
}

// written returns an item as operators write it.
func written(key, body string) limits.Item {
	return limits.Item{Key: key, Body: json.RawMessage(body), Version: 1, Actor: "operator", At: epochOfCells}
}

// load returns the limits of a new proxy.
func (r *cellsRun) load(cell string, weight int64) *catalog.Catalog {
	r.tb.Helper()
	compile := func(parts map[string]json.RawMessage, _ bool) (*limit.Set, error) {
		cells, err := config.CellsOf(parts, cell, weight)
		if err != nil {
			return nil, err
		}
		set, _, err := config.CompileParts("limits", parts, limit.CompileOptions{Cells: cells})
		return set, err
	}
	c := catalog.New(catalog.Options{Name: "limits", Compile: compile, Log: slog.New(slog.DiscardHandler), Now: r.time})
	items := slices.Clone(r.file)
	if r.set.Version > 0 {
		items = append(items, r.set)
	}
	if err := c.Load(items); err != nil {
		r.tb.Fatal(err)
	}
	return c
}

func (r *cellsRun) time() time.Time { return r.epoch.Add(time.Duration(r.now) * time.Microsecond) }

// join starts a cell, which registers at once.
func (r *cellsRun) join(weight int64) *simulatedCell {
	c := &simulatedCell{id: fmt.Sprintf("cell-%02d", len(r.cells)+1), weight: weight, store: newStoreOfCell()}
	for range proxiesOfCell {
		c.proxies = append(c.proxies, &proxyOfCell{Catalog: r.load(c.id, weight), part: 1})
		r.beat(c)
	}
	r.cells = append(r.cells, c)
	return c
}

// beat sends a heartbeat of a proxy's cell, and repeats it.
func (r *cellsRun) beat(c *simulatedCell) {
	r.register(c)
	r.add(r.now+beatEvery/2+r.random.Int64N(beatEvery/2), func() { r.beat(c) })
}

// register registers a cell.
func (r *cellsRun) register(c *simulatedCell) {
	known, ok := r.known[c.id]
	if !c.cut && !c.mute && (!ok || r.time().Sub(known.Beat) > beatLeast*time.Microsecond) {
		if !ok {
			known.Cell = limits.Cell{ID: c.id, Weight: c.weight}
		}
		known.Beat = r.time()
		r.known[c.id] = known
	}
}

// change changes the registry's entry of a cell, as operators do.
func (r *cellsRun) change(c *simulatedCell, change func(*limits.Cell)) {
	if known, ok := r.known[c.id]; ok {
		change(&known.Cell)
		r.known[c.id] = known
	}
}

// forget removes a cell from the registry; its next heartbeat adds it again.
func (r *cellsRun) forget(c *simulatedCell) { delete(r.known, c.id) }

// heal connects a cell again, and sends it the present list of cells.
func (r *cellsRun) heal(c *simulatedCell) {
	c.cut, c.mute = false, false
	r.sendCells(c)
}

// sendCells sends the list of cells to a cell's proxies.
func (r *cellsRun) sendCells(c *simulatedCell) {
	it := r.set
	for _, p := range c.proxies {
		r.add(r.now+r.random.Int64N(r.slowest), func() {
			if !c.cut {
				p.Apply([]limits.Item{it})
			}
		})
	}
}

// beginLooking starts the control plane.
func (r *cellsRun) beginLooking(at int64) {
	r.add(at, func() {
		r.look()
		r.beginLooking(at + lookEvery)
	})
}

// look makes the control plane read the registry.
func (r *cellsRun) look() {
	plane := controlplane.Cells{Registry: r, Items: r, Log: slog.New(slog.DiscardHandler)}
	if err := plane.Update(r.tb.Context(), r.time()); err != nil {
		r.tb.Fatal(err)
	}
}

// Cells returns the registered cells, see controlplane.Registry.
func (r *cellsRun) Cells(context.Context) (cells []limits.RegisteredCell, err error) {
	for _, id := range slices.Sorted(maps.Keys(r.known)) {
		cells = append(cells, r.known[id])
	}
	return cells, nil
}

// Get returns the only item that the control plane reads, see controlplane.Items.
func (r *cellsRun) Get(context.Context, string) (limits.Item, bool, error) {
	return r.set, r.set.Version > 0, nil
}

// Put writes it, and sends it to all cells.
func (r *cellsRun) Put(_ context.Context, it limits.Item) (limits.Item, error) {
	if it.Version != r.set.Version {
		return it, errors.New("put item: version conflict")
	}
	it.Version++
	r.set = it
	for _, c := range r.cells {
		r.sendCells(c)
	}
	return it, nil
}

// run makes all cells take all available units until an instant.
func (r *cellsRun) run(end int64) {
	for ; r.now < end; r.now += cellTick {
		tick := r.now
		for e, ok := r.next(tick); ok; e, ok = r.next(tick) {
			e.do()
		}
		parts, admitted := make([]float64, len(r.cells)), r.until(tick)
		for i, c := range r.cells {
			part, units := r.ask(c)
			parts[i] = part
			admitted += units
		}
		r.parts, r.admitted = append(r.parts, parts), append(r.admitted, admitted)
	}
}

// until returns the units admitted before an instant.
func (r *cellsRun) until(at int64) int64 {
	if at < cellTick {
		return 0
	}
	return r.admitted[at/cellTick-1]
}

// ask makes one of a cell's proxies take all available units. It returns their number,
// and the largest part of the limit that the bucket may have had since the last call.
func (r *cellsRun) ask(c *simulatedCell) (part float64, units int64) {
	if c.idle {
		return 0, 0
	}
	asked := c.proxies[r.random.IntN(len(c.proxies))]
	part = max(c.stored, c.partOf(asked))
	c.stored = asked.part
	return part, c.store.takeAll(asked.Set(), r.time().UnixMicro())
}

// partOf returns the part of the limit that a proxy should enforce by the list that it
// received.
func (c *simulatedCell) partOf(p *proxyOfCell) float64 {
	if it, ok := p.Cells(); ok && it.Version != p.version {
		p.version, p.part = it.Version, c.computePart(it.Body)
	}
	return p.part
}

// computePart computes the part independently: an active cell has its weight divided by that
// of the active cells, and another has its weight divided by that of all listed cells and
// its own.
func (c *simulatedCell) computePart(body json.RawMessage) float64 {
	var list struct {
		Cells []struct {
			ID             string
			Weight         float64
			Draining, Gone bool
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		panic(err) // the control plane has written it
	}
	own, sharing, named, shares := float64(c.weight), 0.0, float64(c.weight), false
	for _, cell := range list.Cells {
		has := !cell.Draining && !cell.Gone
		if has {
			sharing += cell.Weight
		}
		named += cell.Weight
		if cell.ID == c.id { // the list's weight replaces the flag's
			named -= own
			own, shares = cell.Weight, has
		}
	}
	if shares {
		return own / sharing
	}
	return own / named
}
