package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// appConfig is a fake of AWS AppConfig, because no emulator has deployments and data. It
// keeps the versions and deployments of one configuration. It returns the latest
// deployment once to each session until there is another one.
type appConfig struct {
	*httptest.Server

	mu          sync.Mutex // guards the fields below
	versions    []string
	deployments []int // the version of each
	stopped     []int
	sessions    map[string]int // number of deployments that the session of a token has received
	running     bool           // the latest deployment is in progress
	rollingBack bool           // a stopped deployment is being rolled back
	fault       http.HandlerFunc
	faulty      string         // the calls with the fault, "METHOD last-part-of-the-path", or "" for all
	calls       map[string]int // by the same names
	expired     int            // how often all sessions have expired
	deny        string         // deployments with this description are refused, unless it is empty
}

// gateName is the name of this configuration on the command line.
const gateName = "appconfig://app1234/env1234/pro1234"

func newAppConfig(t testing.TB) *appConfig {
	t.Helper()
	a := &appConfig{sessions: map[string]int{}, calls: map[string]int{}}
	mux := http.NewServeMux()
	const profile, environment = "/applications/app1234/configurationprofiles/pro1234", "/applications/app1234/environments/env1234"
	mux.HandleFunc("POST "+profile+"/hostedconfigurationversions", a.addVersion)
	mux.HandleFunc("GET "+profile+"/hostedconfigurationversions/{n}", a.version)
	mux.HandleFunc("POST "+environment+"/deployments", a.deploy)
	mux.HandleFunc("GET "+environment+"/deployments", a.list)
	mux.HandleFunc("GET "+environment+"/deployments/{n}", a.deployment)
	mux.HandleFunc("DELETE "+environment+"/deployments/{n}", a.stop)
	mux.HandleFunc("POST /configurationsessions", a.session)
	mux.HandleFunc("GET /configuration", a.latest)
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fault := a.called(r); fault != nil {
			fault(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// called counts a call, and returns the fault that handles it, nil for none.
func (a *appConfig) called(r *http.Request) http.HandlerFunc {
	name := r.Method + " " + path.Base(r.URL.Path)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls[name]++
	if a.faulty == "" || a.faulty == name {
		return a.fault
	}
	return nil
}

// fail makes calls of a name, or all for "", return a fault, and resets the counts of
// calls. A nil fault ends that.
func (a *appConfig) fail(name string, fault http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faulty, a.fault = name, fault
	clear(a.calls)
}

// count returns how often a call was made since the last reset; "" counts all.
func (a *appConfig) count(name string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for call, times := range a.calls {
		if name == "" || call == name {
			n += times
		}
	}
	return n
}

// put deploys a configuration.
func (a *appConfig) put(body string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.versions = append(a.versions, body)
	a.deployments = append(a.deployments, len(a.versions))
}

// denies makes deployments with a description fail, none if it is empty, and resets the
// counts of calls.
func (a *appConfig) denies(description string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deny = description
	clear(a.calls)
}

// environment returns the variables that direct a process to it.
func (a *appConfig) environment() []string {
	return []string{"AWS_ENDPOINT_URL_APPCONFIG=" + a.URL, "AWS_ENDPOINT_URL_APPCONFIGDATA=" + a.URL}
}

// live returns the latest deployed configuration.
func (a *appConfig) live() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.deployments) == 0 {
		return ""
	}
	return a.versions[a.deployments[len(a.deployments)-1]-1]
}

// run keeps the latest deployment in progress until it is stopped.
func (a *appConfig) run() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running = true
}

// stops returns how many deployments were stopped.
func (a *appConfig) stops() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.stopped)
}

func (a *appConfig) addVersion(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.versions = append(a.versions, string(body))
	w.Header().Set("Version-Number", strconv.Itoa(len(a.versions)))
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(body)
}

func (a *appConfig) version(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.PathValue("n"))
	a.mu.Lock()
	defer a.mu.Unlock()
	if n < 1 || n > len(a.versions) {
		refuse(w, http.StatusNotFound, "ResourceNotFoundException")
		return
	}
	_, _ = io.WriteString(w, a.versions[n-1])
}

func (a *appConfig) deploy(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ConfigurationVersion string
		Strategy             string `json:"DeploymentStrategyId"`
		Profile              string `json:"ConfigurationProfileId"`
		Description          string
	}
	n := 0
	if json.NewDecoder(r.Body).Decode(&in) == nil && in.Profile == "pro1234" && in.Strategy != "" {
		n, _ = strconv.Atoi(in.ConfigurationVersion)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.deny != "" && in.Description == a.deny:
		refuse(w, http.StatusForbidden, "AccessDeniedException")
	case n < 1 || n > len(a.versions):
		refuse(w, http.StatusBadRequest, "BadRequestException")
	case a.running && !slices.Contains(a.stopped, len(a.deployments)), a.rollingBack:
		a.rollingBack = false // the rollback takes a moment
		refuse(w, http.StatusConflict, "ConflictException")
	default:
		a.deployments = append(a.deployments, n)
		w.WriteHeader(http.StatusCreated)
		answer(w, a.describe(len(a.deployments)))
	}
}

// describe returns the description of a deployment. The caller holds mu.
func (a *appConfig) describe(n int) map[string]any {
	state := "COMPLETE"
	if a.running && n == len(a.deployments) {
		state = "DEPLOYING"
	}
	if slices.Contains(a.stopped, n) {
		state = "ROLLED_BACK"
	}
	return map[string]any{
		"DeploymentNumber": n, "State": state, "ConfigurationVersion": strconv.Itoa(a.deployments[n-1]), "ConfigurationProfileId": "pro1234",
	}
}

func (a *appConfig) list(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []any{}
	for n := len(a.deployments); n > 0; n-- {
		items = append(items, a.describe(n))
	}
	answer(w, map[string]any{"Items": items})
}

func (a *appConfig) deployment(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.PathValue("n"))
	a.mu.Lock()
	defer a.mu.Unlock()
	answer(w, a.describe(n))
}

func (a *appConfig) stop(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.PathValue("n"))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped, a.running, a.rollingBack = append(a.stopped, n), false, true
	w.WriteHeader(http.StatusAccepted)
	answer(w, a.describe(n))
}

func (a *appConfig) session(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
	answer(w, map[string]any{"InitialConfigurationToken": a.token(0)})
}

// token returns the token of a session that has received some deployments. The caller
// holds mu.
func (a *appConfig) token(seen int) string {
	token := fmt.Sprint("t", a.expired, "-", len(a.sessions))
	a.sessions[token] = seen
	return token
}

func (a *appConfig) latest(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen, ok := a.sessions[r.URL.Query().Get("configuration_token")]
	switch {
	case !ok:
		refuse(w, http.StatusBadRequest, "BadRequestException")
	case len(a.deployments) == 0:
		refuse(w, http.StatusNotFound, "ResourceNotFoundException")
	default:
		w.Header().Set("Next-Poll-Configuration-Token", a.token(len(a.deployments)))
		w.Header().Set("Next-Poll-Interval-In-Seconds", "1")
		if seen < len(a.deployments) {
			_, _ = io.WriteString(w, a.versions[a.deployments[len(a.deployments)-1]-1])
		}
	}
}

func answer(w http.ResponseWriter, body map[string]any) {
	_ = json.NewEncoder(w).Encode(body)
}

// refuse replies with an error as AWS does.
func refuse(w http.ResponseWriter, code int, kind string) {
	w.Header().Set("X-Amzn-ErrorType", kind)
	w.WriteHeader(code)
	answer(w, map[string]any{"Message": kind})
}

// status returns a handler that replies with a code and a body.
func status(code int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if kind != "" {
			w.Header().Set("X-Amzn-ErrorType", kind)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// html is the reply of an unrelated server.
const html = "<html><body>Sign in</body></html>"
