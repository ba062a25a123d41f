package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/accesslog"
	"github.com/limitgate/limitgate/internal/replay"
	"github.com/limitgate/limitgate/limit"
)

const replayAbout = `Replays a web server's access log through limits, and tells what they would
have done to that traffic.

Usage: limitgate replay [flags] --limits FILE ACCESS_LOG

The log is in Common or Combined Log Format, in JSON (nginx, Caddy, Traefik,
Envoy), or as Envoy, an Application Load Balancer, CloudFront or IIS writes it, plain
or gzip; - is standard input. Each line becomes a request on the log's own clock: --tenant and --op
are templates of {method} {path} {path:N} {route} {query:NAME} {status} {user}
{host} {referer_host} {ua_family} and text; {route} is the path with {id} for
each segment that has a digit, but of a version such as v1; {host} is the
client's address or name. A tenant that the limits file does not list has its
default plan. Requests are decided in the order of their times, which are printed in
UTC, and cost one unit each.

With --against the requests go to a running limitgate. That takes units there:
those requests count against the limits of whoever uses it. They are sent as fast
as it answers, and so are denied more than in the log's own time; --speed 1x keeps
the pace of the log. What a shadow limit would have denied a proxy does not tell:
the report has ? there, and null with --json.

It exits with 0 when the log was replayed, 1 when something went wrong and 64
when the arguments are wrong.`

// replayTimeout bounds the wait for the replies to one pipeline.
const replayTimeout = 30 * time.Second

// leastSpeed is the slowest pace of a replay against a proxy, and one divided by it the fastest.
const leastSpeed = 1e-6

// replayFlags are the flags of replay.
type replayFlags struct {
	limits, compare, against, speed, tenant, op, secret string

	client             clientFlags
	dims               dimFlags
	sort, frozen, json bool
	showAddresses      bool
	svg                string
}

const replayExample = "limitgate replay --limits limits.yaml access.log.gz"

func runReplay(ctx context.Context, env *environment, args []string) int {
	var f replayFlags
	fs := newFlags(env, "replay", replayAbout, replayExample)
	f.register(fs)
	code, done := parseFlags(env, fs, args)
	if done {
		return code
	}
	if wrong := wrongArguments(fs, []string{"limits"}, "log"); wrong != "" {
		fmt.Fprintf(env.stderr, "limitgate replay: %s%s: %s\n", wrong, tookLast(fs, args), replayExample)
		return exitUsage
	}
	log := fs.Arg(0)
	err := f.checkTogether(fs, log)
	var opts replay.Options
	if err == nil {
		opts, err = f.options()
	}
	if err != nil {
		fmt.Fprintf(env.stderr, "limitgate replay: %s; limitgate replay --help says more\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var warnings []string
	opts.Warn = func(text string) { warnings = append(warnings, text) }
	err = f.run(ctx, env, log, opts)
	printWarnings(env, fs.Name(), warnings)
	if err != nil {
		return fail(env, ofLog(log, err))
	}
	return exitOK
}

func (f *replayFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.limits, "limits", "", "the limits `file`")
	fs.StringVar(&f.compare, "compare", "", "another limits `file`: print the difference on the same traffic")
	fs.StringVar(&f.against, "against", "", "`HOST:PORT` of a running limitgate to send the requests to, which takes units there")
	f.client.addrFlag = "against"
	f.client.define(fs)
	fs.StringVar(&f.speed, "speed", "max", "with --against, the `pace`: 1x is the pace of the log, 10x ten times that, or max")
	fs.StringVar(&f.tenant, "tenant", "web", "`template` of the tenant")
	fs.StringVar(&f.op, "op", accesslog.DefaultOp, "`template` of the operation")
	fs.Var(&f.dims, "dim", "`NAME=TEMPLATE` of a further dimension; may be repeated")
	fs.StringVar(&f.secret, "privacy-ip-secret-file", "", "`file` of the secret that addresses are hashed with, to find them in a store")
	fs.BoolVar(&f.sort, "sort", false, "hold the whole log in memory and sort it, if it is further out of order than 200,000 lines")
	fs.BoolVar(&f.frozen, "frozen", false, "let the clock stand still at the first line")
	fs.BoolVar(&f.showAddresses, "show-addresses", false, "add the addresses of clients to the buckets that have them hashed")
	fs.StringVar(&f.svg, "svg", "", "write a timeline of each limit into this `file`")
	fs.BoolVar(&f.json, "json", false, "print the report as JSON")
}

// secondDim matches the template of one dimension with another dimension behind a comma.
var secondDim = regexp.MustCompile(`^(.*\}), ?(\w+=.*)$`)

// dimFlags collects the values of --dim.
type dimFlags map[string]*accesslog.Template

func (d *dimFlags) String() string { return "" }

func (d *dimFlags) Set(s string) error {
	name, text, ok := strings.Cut(s, "=")
	if ok && limit.ReservedDim(name) {
		return errors.New("op is set by --op, tenant by --tenant, and ip is the address in the log")
	}
	if !ok || limit.CheckName(name) != nil {
		return errors.New("a dimension is NAME=TEMPLATE, for example user={user}")
	}
	if (*d)[name] != nil {
		return errors.New("the dimension is there twice: leave one out")
	}
	if second := secondDim.FindStringSubmatch(text); second != nil {
		return fmt.Errorf("one dimension belongs to each --dim: write --dim %s=%s --dim %s", name, second[1], second[2])
	}
	t, err := accesslog.ParseTemplate(text)
	if err != nil {
		return err
	}
	if *d == nil {
		*d = dimFlags{}
	}
	(*d)[name] = t
	return nil
}

// sameFile reports whether two paths are those of one file, which exists.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// checkTogether returns an error for flags that do not go together, or not with the log.
func (f *replayFlags) checkTogether(fs *flag.FlagSet, log string) error {
	if problem := noEffect(fs, "against", clientFlagNames()...); problem != "" && f.against == "" {
		return errors.New(problem)
	}
	if log == "-" && (f.limits == "-" || f.compare == "-") {
		return errors.New("standard input can be the limits file or the log, not both")
	}
	if f.limits == "-" && f.compare == "-" {
		return errors.New("standard input can be one of two limits files, not both")
	}
	if f.svg == "-" {
		return errors.New("--svg names a file, as standard output has the report: name a new one")
	}
	if f.against != "" && f.compare != "" {
		return errors.New("--compare works on two files, --against on a running proxy: say one of them")
	}
	for _, read := range []string{f.limits, f.compare, log} {
		if sameFile(f.svg, read) {
			return fmt.Errorf("--svg %s would replace a file that is read: name a new one", config.Quote(f.svg))
		}
	}
	if err := checkPicture("svg", f.svg); err != nil {
		return err
	}
	if f.svg != "" && (f.against != "" || f.compare != "") {
		return errors.New("--svg draws the replay of one limits file, and goes with neither --compare nor --against")
	}
	if f.against != "" && f.showAddresses {
		return errors.New("--show-addresses is for a replay in memory: a proxy does not say which buckets it used")
	}
	if f.compare != "" && f.showAddresses && !f.json {
		return errors.New("--show-addresses shows addresses in names of buckets, and a comparison has these only with --json")
	}
	if f.against != "" && f.frozen {
		return errors.New("--frozen stops the clock of a replay in memory: a proxy has a clock of its own")
	}
	return nil
}

func (f *replayFlags) options() (replay.Options, error) {
	opts := replay.Options{Sort: f.sort, ShowAddresses: f.showAddresses, Frozen: f.frozen, Dims: f.dims}
	var err error
	if opts.Tenant, err = accesslog.ParseTemplate(f.tenant); err != nil {
		return opts, fmt.Errorf("flag --tenant: %w", err)
	}
	if opts.Op, err = accesslog.ParseTemplate(f.op); err != nil {
		return opts, fmt.Errorf("flag --op: %w", err)
	}
	if f.speed == "max" {
		return opts, nil
	}
	if f.against == "" {
		return opts, errors.New("--speed is the pace at which a proxy is asked: say --against HOST:PORT")
	}
	if opts.Speed, err = strconv.ParseFloat(strings.TrimSuffix(f.speed, "x"), 64); err != nil || !(opts.Speed >= leastSpeed && opts.Speed <= 1/leastSpeed) {
		return opts, fmt.Errorf("flag --speed: %.32q is not a pace: write 1x, 10x or max", f.speed)
	}
	return opts, nil
}

func (f *replayFlags) run(ctx context.Context, env *environment, log string, opts replay.Options) error {
	var err error
	if f.secret != "" {
		if opts.Secret, err = config.ReadSecret(f.secret); err != nil {
			return err
		}
	}
	set, _, err := loadLimits(env, f.limits, limit.CompileOptions{})
	if err != nil {
		return err
	}
	in, size, err := openLog(ctx, env, log)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	progress := accesslog.NewProgress(env.stderr, term.IsTerminal(int(os.Stderr.Fd())), size, time.Now)
	defer progress.Finish()
	opts.Progress, opts.Paced = progress.Update, progress.UpdatePaced
	if opts.Speed > 0 {
		fmt.Fprintf(env.stderr, "limitgate replay: at --speed %s an hour of the log takes %s\n", f.speed, time.Duration(float64(time.Hour)/opts.Speed).Round(time.Millisecond))
	}
	if f.compare != "" {
		return f.runCompare(ctx, env, in, set, opts, progress)
	}
	var report *replay.Report
	if f.against != "" {
		client, err := f.client.newClient(f.against, replayTimeout, 2)
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		defer func() { _ = client.Close() }()
		if report, err = replay.Against(ctx, client, in, set, opts); err != nil {
			return explainDialOf(f.client.addrFlag, f.against, err)
		}
	} else {
		report, err = replay.Local(ctx, in, set, opts)
	}
	if err != nil {
		return err
	}
	progress.Finish()
	if f.svg != "" {
		if err := writeTimeline(report, f.svg); err != nil {
			return err
		}
	}
	if f.json {
		return writeJSON(env.stdout, report)
	}
	report.Write(env.stdout)
	return nil
}

// writeTimeline writes the timeline of a report into a file.
func writeTimeline(report *replay.Report, path string) error {
	var b bytes.Buffer
	if err := report.WriteTimeline(&b); err != nil {
		return fmt.Errorf("draw timeline: %w", err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write timeline: %w", err)
	}
	return nil
}

func (f *replayFlags) runCompare(ctx context.Context, env *environment, in io.Reader, set *limit.Set, opts replay.Options, progress *accesslog.Progress) error {
	other, _, err := loadLimits(env, f.compare, limit.CompileOptions{})
	if err != nil {
		return err
	}
	c, err := replay.Compare(ctx, in, set, other, opts)
	if err != nil {
		return err
	}
	progress.Finish()
	if f.json {
		return writeJSON(env.stdout, c)
	}
	c.Write(env.stdout, f.limits, f.compare)
	return nil
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// ofLog names the log in an error about its content.
func ofLog(path string, err error) error {
	switch {
	case errors.Is(err, replay.ErrEmpty) && path == "-":
		return errors.New("read access log: standard input is empty")
	case errors.Is(err, replay.ErrEmpty):
		return fmt.Errorf("read access log: %s is empty", config.Quote(path))
	case path != "-" && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrHeader)):
		return fmt.Errorf("%s: %w", config.Quote(path), err)
	case !errors.Is(err, replay.ErrNothing):
		return err
	}
	if content, readErr := config.ReadLimitsFile(path); readErr == nil {
		if kind, _ := config.KindOf(content); kind != "" {
			return fmt.Errorf("read access log: %s is %s, and no log: the last argument is the log", config.Quote(path), kind)
		}
	}
	return err
}
