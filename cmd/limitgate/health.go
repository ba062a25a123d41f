package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/rlsenv"
)

const healthAbout = `Asks whether a limitgate is ready, for the health checks of containers.

Usage: limitgate health [--addr ADDRESS | --config FILE]

It asks /readyz of the admin address. Without --addr that is the one of the settings: the
variables of the environment, and the settings file that --config or LIMITGATE_CONFIG names,
as serve reads them, and PROMETHEUS_ADDR, as envoy does. A host such as 0.0.0.0 means this
machine. If those settings have a certificate, it asks by TLS and does not verify it, since
it is this machine's own.

It prints a line, with the error while the store fails or the limits are stale, and exits
with 0 when the limitgate is ready, 1 when it is not or cannot be asked, and with 64 when
the arguments are wrong.`

// maxReadiness bounds the bytes of a reply that are read. A cluster of a thousand masters
// has a tenth of it.
const maxReadiness = 1 << 20

func runHealth(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "health", healthAbout, "limitgate health", "limitgate health --addr 127.0.0.1:9180")
	addr := fs.String("addr", "", "the admin `address` to ask, in place of that of the settings")
	file := fs.String("config", "", "the settings `file` of serve")
	timeout := fs.Duration("timeout", 2*time.Second, "how long to wait for an answer")
	var client clientFlags
	client.defineTLS(fs)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if err := checkHealth(fs, *addr, *file, *timeout); err != nil {
		fmt.Fprintf(env.stderr, "limitgate health: %s; limitgate health --help says more\n", err)
		return exitUsage
	}
	target, encryption, err := healthTarget(env, &client, *addr, *file)
	if err != nil {
		return fail(env, fmt.Errorf("health: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	answer, err := askReadiness(ctx, target, encryption)
	if err != nil {
		return fail(env, fmt.Errorf("health: %w", err))
	}
	fmt.Fprintln(env.stdout, answer)
	return exitOK
}

// checkHealth returns a mistake in the arguments.
func checkHealth(fs *flag.FlagSet, addr, file string, timeout time.Duration) error {
	switch {
	case fs.NArg() > 0:
		return config.Mistake(config.Quote(fs.Arg(0)) + " is not a flag: write --addr in front of an address")
	case addr != "" && file != "":
		return config.Mistake("--addr and --config both name the address: leave one out")
	case addr != "":
		if err := checkAddr("addr", addr, "127.0.0.1:9180"); err != nil {
			return err
		}
	}
	return checkBetween("timeout", timeout, time.Millisecond, mostWait)
}

// healthTarget returns the address to ask, and the configuration of TLS, or nil.
func healthTarget(env *environment, client *clientFlags, addr, file string) (target string, encryption *tls.Config, err error) {
	if addr != "" {
		encryption, err = client.tlsConfig(addr)
		return addr, encryption, err
	}
	environ := env.environ
	if er, _, err := rlsenv.Parse(environ); err == nil && er.PrometheusAddr != "" { // of limitgate envoy
		environ = append(environ[:len(environ):len(environ)], missingFrom(environ, envoyVariables(er))...)
	}
	admin, err := config.ReadAdmin(file, environ, config.ReadSettingsFile)
	switch {
	case err != nil:
		return "", nil, err
	case admin.Addr == "":
		return "", nil, errors.New("the settings switch the admin address off: name one by --addr")
	case client.tls:
		encryption, err = client.tlsConfig(admin.Addr)
	case admin.TLS:
		// The request has no secret, and the certificate rarely names a loopback address.
		encryption = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	default:
		_, err = client.tlsConfig(admin.Addr) // which refuses certificates without --tls
	}
	return ownAddress(admin.Addr), encryption, err
}

// ownAddress returns the address on which this machine reaches a listener of its own.
func ownAddress(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host = "127.0.0.1"; ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}

// readinessReply is an answer of /readyz.
type readinessReply struct {
	code   int
	status string
	body   []byte
}

// notHTTP matches the errors of net/http about a server that answers something else, or before it is asked.
var notHTTP = regexp.MustCompile("malformed HTTP|readLoopPeekFail")

// fetchReadiness asks /readyz. No proxy of the environment and no redirect leads it elsewhere.
func fetchReadiness(ctx context.Context, addr string, encryption *tls.Config) (*readinessReply, error) {
	scheme := "http"
	if encryption != nil {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+addr+"/readyz", nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{
		Transport:     &http.Transport{TLSClientConfig: encryption, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("nothing listens at %s: start limitgate, or name the address of its --admin by --addr", addr)
	}
	if errors.Is(err, io.EOF) || err != nil && notHTTP.MatchString(err.Error()) {
		return nil, fmt.Errorf("%s does not answer HTTP: name the --admin address of a limitgate", addr)
	}
	if err != nil {
		return nil, cmp.Or(explainTLS(addr, err), err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReadiness))
	if err != nil {
		return nil, fmt.Errorf("read answer of %s: %w", addr, err)
	}
	return &readinessReply{response.StatusCode, response.Status, body}, nil
}

// readinessBody is what health reads of the body of /readyz.
type readinessBody struct {
	Ready  *bool       `json:"ready"`
	Limits string      `json:"limits"`
	Stale  string      `json:"limits_error"`
	RLS    string      `json:"rls_error"`
	Store  string      `json:"store"`
	Fault  string      `json:"store_error"`
	Shards []shardBody `json:"shards"`
}

// shardBody is what health reads of a master in the body of /readyz.
type shardBody struct {
	Addr    string `json:"addr"`
	Breaker string `json:"breaker"`
	Error   string `json:"error"`
}

// isOpen reports whether the breaker is not closed.
func (s *shardBody) isOpen() bool { return s.Breaker != "" && s.Breaker != breaker.Closed.String() }

// shardFault returns the first error of a master, or "".
func (r *readinessBody) shardFault() string {
	for _, sh := range r.Shards {
		if sh.Error != "" {
			return sh.Addr + ": " + sh.Error
		}
	}
	return ""
}

// failedCalls returns to which masters with a closed breaker calls have failed, with the error, or "". A master without
// memory has a closed breaker where calls only read.
func (r *readinessBody) failedCalls() string {
	failed, first := 0, shardBody{}
	for _, sh := range r.Shards {
		if sh.isOpen() || sh.Error == "" {
			continue
		}
		if failed++; failed == 1 {
			first = sh
		}
	}
	switch failed {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%s have failed: %s", first.Addr, first.Error)
	}
	return fmt.Sprintf("%d of %d nodes have failed: %s: %s", failed, len(r.Shards), first.Addr, first.Error)
}

// storeFault returns what the backstop decides in place of the store, with the error, or "" if it decides nothing.
func (r *readinessBody) storeFault() string {
	open, first := 0, ""
	for _, sh := range r.Shards {
		if !sh.isOpen() {
			continue
		}
		if open++; open == 1 {
			first = sh.Addr + ": " + cmp.Or(sh.Error, "its breaker is "+sh.Breaker)
		}
	}
	late := r.failedCalls() // a late one is not all of its node
	if late != "" && open > 0 {
		first += ", and calls to " + late
	}
	switch all := len(r.Shards); {
	case open == 1:
		return "for " + first
	case open > 1 && open == all:
		return fmt.Sprintf("everything, as none of %d nodes does: %s", all, first)
	case open > 1:
		return fmt.Sprintf("for %d of %d nodes: %s", open, all, first)
	case strings.Contains(r.Fault, "hash slots have no master"):
		return "for some of the tenants: " + r.Fault
	case late != "" && r.Fault != "":
		return "for each call that fails: those to " + late
	case r.Fault == "" || r.topologyFault() != "":
		return ""
	case all > 0:
		return "for a node: " + r.Fault
	}
	return "everything: " + r.Fault
}

// topologyFault returns the error of the last fetch of the topology, or "". The masters that are known may decide all the same.
func (r *readinessBody) topologyFault() string {
	if len(r.Shards) > 0 && strings.HasPrefix(r.Fault, "fetch topology: ") {
		return r.Fault
	}
	return ""
}

// line returns the line for a proxy that is ready. The address may be that of another program, whose
// words a terminal must not obey.
func (r *readinessBody) line() string {
	limits, but := fmt.Sprintf("limits %.256s", table.Printable(r.Limits)), ": "
	if r.Stale != "" {
		limits += fmt.Sprintf(" (%.512s)", table.Printable(r.Stale))
	}
	if r.RLS != "" {
		limits += fmt.Sprintf(" (of Envoy: %.512s)", table.Printable(r.RLS))
	}
	if fault := r.storeFault(); fault != "" {
		but = fmt.Sprintf(", but the backstop decides %.512s; ", table.Printable(fault))
	} else if failed := r.failedCalls(); failed != "" {
		but = fmt.Sprintf(", but calls to %.512s; ", table.Printable(failed))
	} else if fault := r.topologyFault(); fault != "" {
		but = fmt.Sprintf(", and the store decides, but its nodes cannot be looked up: %.512s; ", table.Printable(fault))
	}
	return fmt.Sprintf("ready%s%s, store %.256s", but, limits, table.Printable(r.Store))
}

// askReadiness asks /readyz, and returns the line for a proxy that is ready.
func askReadiness(ctx context.Context, addr string, encryption *tls.Config) (line string, err error) {
	reply, err := fetchReadiness(ctx, addr, encryption)
	if err != nil {
		return "", err
	}
	var r readinessBody
	if bytes.Contains(reply.body, []byte("HTTP request to an HTTPS server")) {
		return "", fmt.Errorf("%s speaks TLS: say --tls, and name the file of its authority by --tls-ca", addr)
	}
	if bytes.Contains(reply.body, []byte("speaks the protocol of Redis")) {
		return "", fmt.Errorf("%s is the address of a limitgate for Redis clients: name that of its --admin by --addr", addr)
	}
	if json.Unmarshal(reply.body, &r) != nil || r.Ready == nil {
		return "", fmt.Errorf("%s answers %s, and not as a limitgate: name the address of its --admin by --addr", addr, reply.status)
	}
	if !*r.Ready || reply.code != http.StatusOK {
		return "", fmt.Errorf("%s is not ready: %.512s", addr, table.Printable(cmp.Or(r.Fault, r.shardFault(), "it drains, or has not reached its store")))
	}
	return addr + " is " + r.line(), nil
}
