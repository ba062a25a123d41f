package dashboard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/users"
)

//go:embed assets
var assets embed.FS

// policy allows a page what this package serves and nothing else:
// https://www.w3.org/TR/CSP3/
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Options configure a Dashboard.
type Options struct {
	// Read reads the state of the proxy. Only one call runs at a time.
	Read func() *Reading
	// Handler answers the commands of a page, and knows the users.
	Handler *commands.Handler
	// History is that of the limits.
	History *History
	// CellLimits returns this cell's part of each limit of a plan and each shared one, none outside
	// cells.
	CellLimits func() []CellLimit
	Version    string // of this program
}

// Dashboard serves the page. It is safe for concurrent use.
type Dashboard struct {
	opts       Options
	sampler    sampler
	files      map[string]asset
	simulating chan struct{} // full while a simulation runs
}

// asset is a file of the page.
type asset struct {
	content []byte
	kind    string
	tag     string // its ETag
}

// kinds are the media types of files by their extension.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// New returns a dashboard. It samples only while Run runs.
func New(opts Options) *Dashboard {
	d := &Dashboard{opts: opts, files: map[string]asset{}, simulating: make(chan struct{}, 1)}
	d.sampler = sampler{read: opts.Read, version: opts.Version, next: make(chan struct{}), done: make(chan struct{}), points: []timedPoint{}}
	entries, _ := assets.ReadDir("assets") // embedded: there is no error
	for _, e := range entries {
		content, _ := assets.ReadFile(path.Join("assets", e.Name()))
		sum := sha256.Sum256(content)
		d.files["/"+e.Name()] = asset{content, kinds[path.Ext(e.Name())], `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	d.files["/"] = d.files["/index.html"]
	return d
}

// Run samples the proxy until ctx ends, which ends all streams too.
func (d *Dashboard) Run(ctx context.Context) error {
	d.sampler.run(ctx)
	return nil
}

// Register adds the page to the handlers of an address. Users, if there are any, need the group
// @read and all tenants, and give their name and password as HTTP Basic.
func (d *Dashboard) Register(mux *http.ServeMux) {
	for name := range d.files {
		pattern := "GET " + name
		if name == "/" {
			pattern = "GET /{$}"
		}
		mux.Handle(pattern, d.permitted(d.file))
	}
	mux.Handle("GET /api/events", d.permitted(func(w http.ResponseWriter, r *http.Request, _ *users.User) {
		if r.Method == http.MethodHead {
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // which would end the request
		d.sampler.serve(w, r, func() bool {                            // the users may have been replaced
			_, errReply := d.user(r)
			return errReply == ""
		})
	}))
	mux.Handle("GET /api/explain", d.permitted(d.explain))
	mux.Handle("GET /api/limits", d.permitted(func(w http.ResponseWriter, r *http.Request, u *users.User) {
		d.reply(w, d.opts.Handler.Call(r.Context(), u, words("RL.LIMITS")))
	}))
	mux.Handle("GET /api/history", d.permitted(d.history))
	mux.Handle("GET /api/cells", d.permitted(d.cells))
	mux.Handle("GET /api/simulate", d.permitted(d.simulate))
}

// permitted serves a request of a user that may see all tenants.
func (d *Dashboard) permitted(serve func(http.ResponseWriter, *http.Request, *users.User)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		if r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			http.Error(w, "another site's page may not read this", http.StatusForbidden)
			return
		}
		u, errReply := d.user(r)
		if errReply == "" && u == users.Unrestricted && !isOwnName(r.Host) {
			http.Error(w, "open the page by the address of the host: another site's name may lead here (with --users any name does)", http.StatusForbidden)
			return
		}
		if errReply != "" {
			h.Set("WWW-Authenticate", `Basic realm="limitgate", charset="UTF-8"`)
			http.Error(w, "a user with +@read and ~* may see this page: "+errReply, http.StatusUnauthorized)
			return
		}
		serve(w, r, u)
	})
}

// privateNames are the ends of names that no public name server resolves.
var privateNames = []string{"localhost", ".localhost", ".local", ".internal", ".svc", ".cluster.local", ".home.arpa"}

// isOwnName reports whether a Host header is an address or a name that only a private network has. A
// page of another site can make its own name resolve to this host, and then read what needs no password.
func isOwnName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") {
		return true
	}
	return slices.ContainsFunc(privateNames, func(end string) bool { return strings.HasSuffix(host, end) })
}

// user returns the user of a request, or why it may not see the page.
func (d *Dashboard) user(r *http.Request) (u *users.User, errReply string) {
	name, password, _ := r.BasicAuth()
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	if u, errReply = d.opts.Handler.LogIn(r.Context(), from.Addr().Unmap().WithZone(""), nil, name, password); errReply == "" {
		errReply = d.opts.Handler.Permits(u, words("rl.denied"))
	}
	return u, errReply
}

// replyError returns the text of an error reply, or "".
func replyError(reply []byte) string {
	if line, _, _ := bytes.Cut(reply, []byte("\r\n")); len(line) > 0 && line[0] == '-' {
		return string(line[1:])
	}
	return ""
}

// file serves a file of the page.
func (d *Dashboard) file(w http.ResponseWriter, r *http.Request, _ *users.User) {
	f := d.files[r.URL.Path]
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("ETag", f.tag)
	w.Header().Set("Cache-Control", "no-cache") // the next release has other files
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}

// words returns the words of a command.
func words(all ...string) [][]byte {
	args := make([][]byte, len(all))
	for i, w := range all {
		args[i] = []byte(w)
	}
	return args
}

// explain answers the form that asks why a request is decided as it is.
func (d *Dashboard) explain(w http.ResponseWriter, r *http.Request, u *users.User) {
	q := r.URL.Query()
	orDash := func(name string) string {
		if v := strings.TrimSpace(q.Get(name)); v != "" {
			return v
		}
		return "-"
	}
	args := []string{"RL.EXPLAIN", strings.TrimSpace(q.Get("tenant")), orDash("op"), orDash("ip")}
	if cost := strings.TrimSpace(q.Get("cost")); cost != "" {
		args = append(args, cost)
	}
	for _, dim := range q["dim"] {
		name, value, found := strings.Cut(dim, "=")
		if !found {
			sendJSON(w, http.StatusBadRequest, map[string]string{"error": "a dimension is NAME=VALUE, for example user=ann"})
			return
		}
		args = append(args, "DIM", strings.TrimSpace(name), strings.TrimSpace(value))
	}
	d.reply(w, d.opts.Handler.Call(r.Context(), u, words(args...)))
}

// reply sends a command's reply as JSON.
func (d *Dashboard) reply(w http.ResponseWriter, reply []byte) {
	body, ok := commands.AppendJSON(nil, reply)
	if !ok {
		sendJSON(w, http.StatusBadRequest, map[string]string{"error": replyError(reply)})
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

func sendJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
