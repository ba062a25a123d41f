package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/capacity"
	"github.com/limitgate/limitgate/limit"
)

const planAbout = `Plans the capacity for a load, and prints the monthly bill.

Usage: limitgate plan [flags] --rps NUMBER

It prints how many shards, nodes and proxies the load needs and why, what they
cost, the changes that would change the bill most, and each input with its origin.
With --limits it takes the calls to the store from the limits: all requests count
as the kind with the most CPU. Shards and proxies are sized for the peak, bills by
request are for the mean. docs/capacity.md explains every default.

The built-in prices have a date, and a warning once they are older than 180 days.
Nothing is fetched: --prices names a file of others, in the form of the built-in
one, which --print-prices prints. A part without a price is left out, and named.

It exits with 0 when the plan is printed, 1 when a file cannot be used or no node
has a price, and 64 when the arguments are wrong.`

// planFlags are the flags of plan.
type planFlags struct {
	numbers                           map[string]*countFlag
	limits, measured, prices, picture string
	node, engine, edge, metrics       string
	cpuPerCall                        time.Duration
	cpuGiven, tls, json, printPrices  bool
}

// countFlag is a number such as 50k.
type countFlag struct {
	value       float64
	least, most float64
	text        string // as it is given
	set         bool
}

func (c *countFlag) String() string { return "" }

// Argument is the word for the value in the help.
func (c *countFlag) Argument() string { return "NUMBER" }

func (c *countFlag) Set(text string) (err error) {
	c.value, err = capacity.ParseCount(text)
	c.text, c.set = text, err == nil
	return err
}

// check returns an error for a number out of its range.
func (c *countFlag) check(name string) error {
	switch {
	case !c.set || c.value >= c.least && c.value <= c.most:
		return nil
	case c.most < capacity.MaxNumber:
		return fmt.Errorf("--%s is %.32s: want %v to %v", name, c.text, c.least, c.most)
	case c.value > c.most:
		return fmt.Errorf("--%s is %.32s, which is too large: want at most %.0f", name, c.text, c.most)
	case c.least == 0:
		return fmt.Errorf("--%s is %.32s: want 0 or more", name, c.text)
	}
	return fmt.Errorf("--%s is %.32s: want a number above 0", name, c.text)
}

// define defines the flags.
func (f *planFlags) define(fs *flag.FlagSet) {
	const some, aboveZero, most = 1e-3, math.SmallestNonzeroFloat64, capacity.MaxNumber
	f.numbers = map[string]*countFlag{}
	for _, n := range []struct {
		name, help  string
		least, most float64
	}{
		{"rps", "requests a second in the mean: 50000, 50k or 1M", aboveZero, most},
		{"peak-rps", "requests a second at the peak (default: the mean)", aboveZero, most},
		{"tenants", "tenants with buckets in the store (default 10000)", 0, most},
		{"values", "values that a tenant has of op, ip and the like, where each has a key (default 100)", 0, most},
		{"local-share", "part of the requests decided without the store, by leases for example: 0 to 1 (default 0)", 0, 1},
		{"utilisation", "part of a processor or network that the peak may use: above 0, at most 1 (default 0.6)", some, 1},
		{"replicas", "replicas of each shard (default 1)", 0, 5},
		{"proxy-cores", "processors of each proxy (default 4)", some, 1e3},
	} {
		f.numbers[n.name] = &countFlag{least: n.least, most: n.most}
		fs.Var(f.numbers[n.name], n.name, n.help)
	}
	fs.StringVar(&f.limits, "limits", "", "the limits `file`: calls to the store and buckets of each kind of request")
	fs.BoolVar(&f.tls, "tls", false, "connections are encrypted, from clients to proxies and on to the store")
	fs.StringVar(&f.node, "node", "", "`type` of the nodes, such as cache.r7g.large (default: the cheapest that carries the load)")
	fs.StringVar(&f.engine, "engine", "", "`engine` of the nodes: "+strings.Join(capacity.Engines, " or ")+" (default valkey)")
	fs.DurationVar(&f.cpuPerCall, "cpu-per-call", 0, "processor time of a master for each call, whatever its buckets, such as 7us")
	fs.StringVar(&f.measured, "measured", "", "`file` of limitgate doctor --measure: processor time measured on your store")
	fs.StringVar(&f.edge, "edge", "", "what stands in front, for the `bill`: "+strings.Join(capacity.Edges, ", ")+" (default none)")
	fs.StringVar(&f.metrics, "metrics", "", "`receiver` of metrics: "+strings.Join(capacity.Receivers, " or ")+" (default prometheus)")
	fs.StringVar(&f.prices, "prices", "", "`file` of prices to use instead of the built-in ones")
	fs.BoolVar(&f.printPrices, "print-prices", false, "print the built-in prices, and nothing else")
	fs.StringVar(&f.picture, "picture", "", "write the bill against the load into this SVG `file`")
	fs.BoolVar(&f.json, "json", false, "print the plan as JSON")
}

func runPlan(_ context.Context, env *environment, args []string) int {
	var f planFlags
	fs := newFlags(env, "plan", planAbout,
		"limitgate plan --rps 50k --peak-rps 150k --tenants 10k --limits examples/limits.yaml",
		"limitgate plan --rps 1M --node cache.r7g.large --edge api-gateway-rest --json")
	f.define(fs)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	fs.Visit(func(g *flag.Flag) { f.cpuGiven = f.cpuGiven || g.Name == "cpu-per-call" })
	if f.printPrices {
		_, _ = env.stdout.Write(capacity.DefaultPrices)
		return exitOK
	}
	if err := f.check(fs.Args()); err != nil {
		fmt.Fprintf(env.stderr, "limitgate plan: %s; limitgate plan --help says more\n", err)
		return exitUsage
	}
	in, err := f.input(env, time.Now())
	if err != nil {
		return failLimits(env, err)
	}
	if err := f.print(env, in); err != nil {
		return fail(env, err)
	}
	return exitOK
}

// check returns an error for arguments that are wrong.
func (f *planFlags) check(rest []string) error {
	given := func(name string) float64 { return f.numbers[name].value }
	err := errors.Join(oneOf("edge", f.edge, capacity.Edges), oneOf("engine", f.engine, capacity.Engines), oneOf("metrics", f.metrics, capacity.Receivers))
	for _, name := range slices.Sorted(maps.Keys(f.numbers)) {
		err = errors.Join(err, f.numbers[name].check(name))
	}
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%s is not a flag: the load is given by --rps", config.Quote(rest[0]))
	case given("rps") == 0:
		return errors.New("--rps is needed, above 0: for example limitgate plan --rps 50k")
	case err != nil:
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	case f.numbers["peak-rps"].set && given("peak-rps") < given("rps"):
		return errors.New("--peak-rps is below --rps: the peak is at least the mean")
	case f.cpuGiven && f.cpuPerCall <= 0:
		return errors.New("--cpu-per-call must be above zero")
	case f.cpuPerCall > 0 && f.measured != "":
		return errors.New("--cpu-per-call and --measured give the same number: leave out one of them")
	}
	if replicas := given("replicas"); replicas != float64(int(replicas)) {
		return fmt.Errorf("--replicas is %v: want a whole number", replicas)
	}
	return nil
}

// oneOf returns an error unless the value is empty or one of the words.
func oneOf(name, value string, words []string) error {
	if value == "" || slices.Contains(words, value) {
		return nil
	}
	return fmt.Errorf("--%s %.32q: want one of %s%s", name, value, strings.Join(words, ", "), limit.DidYouMean(value, words))
}

// input makes the input of the plan, and prints a warning if its prices are old.
func (f *planFlags) input(env *environment, now time.Time) (*capacity.Input, error) {
	prices, err := f.readPrices()
	if err != nil {
		return nil, err
	}
	if prices.Stale(now) {
		fmt.Fprintf(env.stderr, "limitgate plan: the prices are of %s, more than 180 days old; --prices FILE gives newer ones\n", prices.Date)
	}
	rps := f.numbers["rps"].value
	in := capacity.Default(capacity.Number{Value: rps, Unit: "/s", Origin: capacity.OriginGiven, Note: "--rps"}, f.tls, prices)
	if f.limits != "" {
		set, _, err := loadLimits(env, f.limits, limit.CompileOptions{})
		if err != nil {
			return nil, err
		}
		applyLimits(in, set)
	}
	f.applyNumbers(in)
	f.applyChoices(in)
	if f.measured == "" {
		return in, nil
	}
	content, err := readSmallFile(f.measured)
	if err != nil {
		return nil, fmt.Errorf("read measurement: %w", err)
	}
	m, err := capacity.ParseMeasured(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.measured, err)
	}
	m.Apply(in)
	in.Heaviest()
	return in, nil
}

// applyNumbers sets the numbers that are given.
func (f *planFlags) applyNumbers(in *capacity.Input) {
	for name, to := range map[string]*capacity.Number{
		"peak-rps": &in.PeakRPS, "tenants": &in.Tenants, "values": &in.Values, "local-share": &in.LocalShare,
		"utilisation": &in.Utilisation, "replicas": &in.Replicas, "proxy-cores": &in.ProxyCores,
	} {
		if n := f.numbers[name]; n.set {
			*to = capacity.Number{Value: n.value, Unit: to.Unit, Origin: capacity.OriginGiven, Note: "--" + name}
		}
	}
	if f.cpuPerCall > 0 {
		given := func(us float64) capacity.Number {
			return capacity.Number{Value: us, Unit: "us", Origin: capacity.OriginGiven, Note: "--cpu-per-call"}
		}
		in.CallCPU, in.FieldCPU, in.KeyCPU = given(float64(f.cpuPerCall)/float64(time.Microsecond)), given(0), given(0)
		in.StoreTLS = capacity.Number{Value: 1, Origin: capacity.OriginGiven, Note: "--cpu-per-call"}
		in.Heaviest()
	}
}

// applyChoices sets the words that are given.
func (f *planFlags) applyChoices(in *capacity.Input) {
	for _, c := range []struct {
		given string
		to    *capacity.Choice
	}{{f.node, &in.Node}, {f.engine, &in.Engine}, {f.edge, &in.Edge}, {f.metrics, &in.Metrics}} {
		if c.given != "" {
			*c.to = capacity.Choice{Value: c.given, Origin: capacity.OriginGiven}
		}
	}
}

// readPrices reads the prices.
func (f *planFlags) readPrices() (*capacity.Prices, error) {
	if f.prices == "" {
		return capacity.ParsePrices(capacity.DefaultPrices)
	}
	content, err := readSmallFile(f.prices)
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	p, err := capacity.ParsePrices(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.prices, err)
	}
	return p, nil
}

// mostSmallFile bounds the files of prices and measurements.
const mostSmallFile = 1 << 20

// readSmallFile reads a file of at most mostSmallFile bytes.
func readSmallFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, mostSmallFile+1))
	if err == nil && len(content) > mostSmallFile {
		err = errors.New(path + " has more than " + strconv.Itoa(mostSmallFile) + " bytes")
	}
	return content, err
}

// print makes the plan and prints it.
func (f *planFlags) print(env *environment, in *capacity.Input) error {
	plan, err := capacity.Make(in)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if f.picture != "" {
		if err := checkPicture("picture", f.picture); err != nil {
			return err
		}
		svg, err := capacity.Picture(in)
		if err != nil {
			return fmt.Errorf("draw bill: %w", err)
		}
		if err := os.WriteFile(f.picture, svg, 0o644); err != nil {
			return fmt.Errorf("write picture: %w", err)
		}
	}
	if f.json {
		return writeJSON(env.stdout, plan)
	}
	return plan.Write(env.stdout)
}
