package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// limitsUsage are the forms of the commands of limits, and limitsTexts their descriptions.
const limitsUsage = `	limitgate limits lint [--strict [--backstop-total-rate N] [--instances N]] FILE
	limitgate limits lint [--rls-merge-domains] FOLDER
	limitgate limits --addr ADDRESS [TENANT]
	limitgate limits explain FILE TENANT OP IP [COST] [DIM NAME VALUE [DIM NAME VALUE ...]]
	limitgate limits explain [--domain DOMAIN] [--json] FOLDER KEY=VALUE,... [KEY=VALUE,... ...]
	limitgate limits import [--shadow] nginx|kong|rules FILE
	limitgate limits import [--shadow] [--tenant-key KEY] envoy FOLDER
	limitgate limits suggest ACCESS_LOG
	limitgate limits diff OLD NEW
	limitgate limits diff FILE dynamodb://TABLE
	limitgate limits push [--yes] [--actor NAME] [--removes NUMBER] FILE dynamodb://TABLE
	limitgate limits pull dynamodb://TABLE
	limitgate limits history --bucket BUCKET [--json] ITEM
	limitgate limits watch --updates ARN|URL [--json] dynamodb://TABLE
	limitgate limits rollback --bucket BUCKET --to VERSION [--yes] [--actor NAME] dynamodb://TABLE ITEM
	limitgate limits confirm --bucket BUCKET [--yes] [--actor NAME] dynamodb://TABLE ITEM
`

var limitsTexts = []struct{ commands, text string }{
	{"lint", `lint lists every mistake as FILE:LINE: FIELD: what is wrong and what would be
right, warns of what is seldom meant, and prints what each limit costs the
store. With --strict it also asks for a --backstop-total-rate of serve, and says
which would fit.`},
	{"explain", `explain says which limits one request would meet, and why. DIM stands before
every dimension.`},
	{"lint explain", `A FOLDER has the files of envoyproxy/ratelimit, for --rls-config of serve. lint lists
the mistakes of all files at once, and warns of what has no effect. explain takes the
descriptors of a request, each its entries with commas between them; a backslash stands
before a comma or an = that is part of a word. It names the rule that each meets and
its counter, or the first entry that meets nothing, and what would have matched.`},
	{"", `With --addr it prints the limits in force of a running limitgate. import makes a
limits file of the configuration of another limiter, suggest one of an access log. diff,
push and pull compare a file with a table, and carry it there and back. limitgate limits
COMMAND --help says more about a command.`},
	{"diff push", `diff prints what changes from one file to another, or what push would write: first the
limits that it loosens, then item by item the plans, all that is shared and the tenants.`},
	{"push", `push asks first, unless --yes is given, and writes each item only if it is still the one
that was shown. A file that removes the default plan, a shared limit, several plans or all
limits of one, or more than a tenth of the tenants or 100 of them is written only if
--removes names the number that it says.`},
	{"pull", `pull prints the table as a file. It exits with 1 if proxies cannot use an item of it.`},
	{"history", `history prints a line for each change of one item, the newest last, as the audit
has them; limitgate audit prints them whole.`},
	{"rollback", `rollback makes one item what it was at a version.`},
	{"confirm", `confirm applies on purpose what was written or deleted by hand and put
back by the control plane, since nobody had signed it.`},
	{"history rollback confirm", `An ITEM is SHARED, PLAN#NAME, TENANT#NAME, or the name of a tenant alone; history takes
the name of a plan, too.`},
	{"watch", `watch prints changes as they happen, until it is interrupted. It receives them
as a proxy does, by a queue of its own. AWS is found as its own tools find it.`},
}

// limitsAbout returns the help of a command of limits, or of limits itself.
func limitsAbout(command string) string {
	var b strings.Builder
	b.WriteString("Works on limits files, and on tables of limits.\n\nUsage:\n\n")
	for line := range strings.Lines(limitsUsage) {
		if command == "" || strings.HasPrefix(line, "\tlimitgate limits "+command+" ") {
			b.WriteString(line)
		}
	}
	for _, t := range limitsTexts {
		if t.commands == command || slices.Contains(strings.Fields(t.commands), command) {
			b.WriteString("\n" + t.text + "\n")
		}
	}
	switch command {
	case "":
		b.WriteString("\nAll exit with 0 when it is done or the file can be used, 1 when not, and with\n64 when the arguments are wrong; diff exits with 2 when there is a difference, and\nimport when it prints what the file cannot say.")
	case "diff":
		b.WriteString("\nIt exits with 0 when there is no difference, 2 when there is one, 1 when a\nfile or the table cannot be read, and with 64 when the arguments are wrong.")
	default:
		b.WriteString("\nIt exits with 0 when it is done or the file can be used, 1 when not, and with\n64 when the arguments are wrong.")
	}
	return b.String()
}

// limitsCommands are the commands of limits.
func limitsCommands() []subcommand {
	return []subcommand{
		{name: "lint", run: runLint},
		{name: "import", run: runImport},
		{name: "suggest", run: runSuggest},
		{name: "explain", run: runExplain},
		{name: "diff", run: runDiff},
		{name: "push", run: runPush},
		{name: "pull", run: runPull},
		{name: "history", run: runHistory},
		{name: "watch", run: runWatch},
		{name: "rollback", run: runRollback},
		{name: "confirm", run: runConfirm},
	}
}

func runLimits(ctx context.Context, env *environment, args []string) int {
	var names []string
	for _, c := range limitsCommands() {
		if len(args) > 0 && args[0] == c.name {
			return c.run(ctx, env, args[1:])
		}
		names = append(names, c.name)
	}
	if slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut("--"+strings.TrimLeft(arg, "-"), "=")
		return isFlag(arg) && (name == "--addr" || config.MeantFlag(name, []string{"--addr"}) != "")
	}) {
		if i := slices.IndexFunc(args, func(arg string) bool { return slices.Contains(names, arg) }); i >= 0 && i+1 < len(args) && !isFlag(args[i+1]) {
			fmt.Fprintf(env.stderr, "limitgate limits: --addr asks a running limitgate, which limits %s does not: leave --addr out\n", args[i])
			return exitUsage
		}
		return limitsRunning.run(ctx, env, args)
	}
	fs := newFlags(env, "limits", limitsAbout(""), "limitgate limits lint examples/limits.yaml")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	text := "say one of " + strings.Join(names, ", ") + "; limitgate limits --addr ADDRESS asks a running limitgate"
	switch all := limitsCommands(); {
	case fs.NArg() > 0 && commandUnderMeant(fs.Arg(0), all) != "":
		text = unknownCommand("limits", fs.Args())
	case fs.NArg() > 0:
		text = mistakeOrAddr(errors.New(noCommand(fs, all)+text), fs).Error()
	}
	fmt.Fprintf(env.stderr, "limitgate limits: %s; limitgate limits --help says more\n", text)
	return exitUsage
}

func runLint(_ context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits lint", limitsAbout("lint"), "limitgate limits lint examples/limits.yaml")
	strict := fs.Bool("strict", false, "also demand on_error on every limit, and a secret if addresses are counted")
	ttl := ipMaxTTLFlag(env, fs)
	secret := fs.String("privacy-ip-secret-file", "", "`file` of the secret that addresses are hashed with")
	var folder folderFlags
	folder.define(fs)
	var ceiling ceilingFlags
	ceiling.define(fs)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if code, done := checkFolderFlags(env, fs, fs.Arg(0), folderFlagNames...); done {
		return code
	}
	if fs.NArg() == 1 && isFolder(fs.Arg(0)) {
		return lintEnvoy(env, fs.Arg(0), folder)
	}
	if problem := lintProblem(fs, ceiling); problem != "" {
		fmt.Fprintf(env.stderr, "limitgate limits lint: %s\n", problem)
		return exitUsage
	}
	if problem := noEffect(fs, "strict", "backstop-total-rate", "instances"); problem != "" && !*strict {
		printWarnings(env, fs.Name(), []string{problem})
	}
	if *secret != "" {
		if _, err := config.ReadSecret(*secret); err != nil {
			return fail(env, err)
		}
	}
	set, warnings, err := loadLimits(env, fs.Arg(0), limit.CompileOptions{
		IPMaxTTL: ttl.Microseconds(), Strict: *strict, IPSecret: *secret != "",
	})
	code := exitOK
	if err != nil {
		code = failFile(env, fs, err, "FILE")
	}
	printProblems(env.stderr, fs.Arg(0), warnings)
	if advice := ceiling.advice(set, err); *strict && advice != "" {
		fmt.Fprintf(env.stderr, "%s: %s (warning)\n", fs.Arg(0), advice)
	}
	if code != exitOK {
		return code
	}
	printExpectations(env.stdout, set)
	for _, w := range warnings {
		if w.Redis || w.Note {
			fmt.Fprintf(env.stdout, "%s (note)\n", w.Format(fs.Arg(0)))
		}
	}
	return exitOK
}

// printProblems prints the warnings about a file that are no notes.
func printProblems(w io.Writer, file string, warnings []limit.Problem) {
	for _, problem := range warnings {
		if !problem.Redis && !problem.Note {
			fmt.Fprintf(w, "%s (warning)\n", problem.Format(file))
		}
	}
}

// lintProblem returns what is wrong with the arguments of lint for a file, or "".
func lintProblem(fs *flag.FlagSet, ceiling ceilingFlags) string {
	if err := ceiling.check(); err != nil {
		return err.Error()
	}
	if fs.NArg() != 1 {
		return wrongArguments(fs, nil, "file") + ": limitgate limits lint limits.yaml"
	}
	return ""
}

func printExpectations(w io.Writer, set *limit.Set) {
	fmt.Fprintf(w, "%s in %s, %s listed, version %s\n", table.Counted(len(set.Limits), "limit"), table.Counted(set.Plans(), "plan"), table.Counted(set.Tenants(), "tenant"), set.Version)
	fmt.Fprintf(w, "at most %s for one request\n", table.Counted(set.MaxEnforced(), "enforced limit"))
	rows := [][]string{{"LIMIT", "FROM", "KEYS IN THE STORE"}}
	for _, e := range set.ExpectedKeys() {
		from := "shared"
		if e.Limit.Plan != "" {
			from = "plan " + e.Limit.Plan
		}
		if e.Limit.Tenant != "" {
			from = "tenant " + e.Limit.Tenant
		}
		rows = append(rows, []string{e.Limit.ID, from, e.Text})
	}
	printColumns(w, rows)
}

// failLimits prints the mistakes of a limits file as they are, which name the file, or another error.
func failLimits(env *environment, err error) int {
	if problems := (*limit.Problems)(nil); !errors.As(err, &problems) {
		return fail(env, err)
	}
	fmt.Fprintln(env.stderr, err)
	return exitError
}

// ofRequest is the usage of a command that has a request behind its file.
const ofRequest = "FILE TENANT OP IP"

// failFile does the same for a command whose first argument is a limits file, with its usage if there
// is no such file.
func failFile(env *environment, flags *flag.FlagSet, err error, usage string) int {
	if !errors.Is(err, fs.ErrNotExist) {
		return failLimits(env, err)
	}
	path := flags.Arg(0)
	missing, near := config.NoFile(path)
	if usage == ofRequest && !strings.ContainsAny(path, "./") { // a tenant without a file in front of it
		missing, near = "there is no file "+config.Quote(path), false
		usage += "; limitgate explain asks a running limitgate"
	}
	if near {
		return fail(env, errors.New(missing))
	}
	return fail(env, fmt.Errorf("%s: limitgate %s %s", missing, flags.Name(), usage))
}

// loadLimits reads a limits file; - is standard input. Without a bound on the time that addresses are kept it accepts any, and
// warns of a file that a proxy with the usual bound refuses.
func loadLimits(env *environment, path string, opts limit.CompileOptions) (*limit.Set, []limit.Problem, error) {
	var content []byte
	var err error
	if path == "-" {
		content, err = config.ReadLimits(env.stdin)
	} else {
		content, err = config.ReadLimitsFile(path)
	}
	if err != nil {
		return nil, nil, err
	}
	set, warnings, err := config.ParseLimits(path, content, opts)
	if err == nil && opts.IPMaxTTL == 0 {
		opts.IPMaxTTL = env.ipMaxTTL().Microseconds()
		if _, _, err := config.ParseLimits(path, content, opts); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				fmt.Fprintf(env.stderr, "%s (warning: limitgate serve refuses it without that setting)\n", line)
			}
		}
	}
	return set, warnings, err
}

func runExplain(_ context.Context, env *environment, args []string) int {
	fs := newFlags(env, "limits explain", limitsAbout("explain"),
		`limitgate limits explain examples/limits.yaml acme "POST /v1/payments" 203.0.113.7`,
		`limitgate limits explain examples/limits.yaml acme "GET /v1/search" - 1 DIM user u1`,
		"limitgate limits explain examples/envoy/ratelimit/config route=login,remote_address=203.0.113.7")
	secretFile := fs.String("privacy-ip-secret-file", "", "`file` of the secret that addresses are hashed with, to print the keys of a store")
	var envoy envoyExplainFlags
	envoy.define(fs)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if code, done := checkFolderFlags(env, fs, fs.Arg(0), append(folderFlagNames, "domain", "json")...); done {
		return code
	}
	if fs.NArg() > 0 && isFolder(fs.Arg(0)) {
		return explainEnvoy(env, fs.Args(), envoy, *secretFile)
	}
	if path := fs.Arg(0); isEnvoys(path) {
		request := "KEY=VALUE,KEY=VALUE"
		if fs.NArg() > 1 && strings.Contains(fs.Arg(1), "=") {
			request = strings.Join(fs.Args()[1:], " ")
		}
		fmt.Fprintf(env.stderr, "limitgate limits explain: %s is a file of Envoy's limits, whose folder is read: limitgate limits explain %s %.200s\n",
			config.Quote(path), filepath.Dir(path), request)
		return exitUsage
	}
	if fs.NArg() == 0 {
		fmt.Fprintln(env.stderr, `limitgate limits explain: a file, tenant, op and ip are needed: limitgate limits explain limits.yaml acme "POST /v1/payments" 203.0.113.7`)
		return exitUsage
	}
	set, _, err := loadLimits(env, fs.Arg(0), limit.CompileOptions{})
	if err != nil {
		return failFile(env, fs, err, ofRequest)
	}
	req, err := commands.ParseRequest(fs.Args()[1:])
	if err != nil {
		fmt.Fprintf(env.stderr, "limitgate limits explain: %s; limitgate limits explain --help says more\n", err)
		return exitUsage
	}
	secret, err := readOrMakeSecret(*secretFile)
	if err != nil {
		return fail(env, err)
	}
	l, err := localLimiter(set, secret)
	if err != nil {
		return fail(env, err)
	}
	printWarnings(env, fs.Name(), commands.RequestWarnings(&req, set, users.Unrestricted.MayUse))
	var batch limiter.Batch
	explanationOf(&req, l.Explain(&batch, &req), *secretFile == "").print(env.stdout)
	return exitOK
}

// readOrMakeSecret returns the secret of a file, or a random one without a file.
func readOrMakeSecret(path string) ([]byte, error) {
	if path == "" {
		return limit.RandomSecret(), nil
	}
	return config.ReadSecret(path)
}

// localLimiter returns a limiter on an empty memory store.
func localLimiter(set *limit.Set, secret []byte) (*limiter.Limiter, error) {
	addrs, err := limit.NewAddrHasher(secret, limit.Prefixes{})
	if err != nil {
		return nil, err
	}
	return limiter.New(limiter.Options{
		Store:    memory.New(memory.Options{}),
		Backstop: backstop.New(backstop.Options{}),
		Addrs:    addrs,
		Timeout:  time.Second,
	}, set), nil
}
