package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var (
	program = flag.String("limitgate", "bin/limitgate", "the program whose page is opened, from the root of the repository")
	axe     = flag.String("axe", "../../../.cache/axe/axe.min.js", "the file of axe-core")
)

const (
	root = "../../.."
	// patience is the deadline of each step. A picture of the demo needs most of it.
	patience = 90 * time.Second
)

// site is a limitgate and a browser that shows its page.
type site struct {
	addr, admin string
	browser     context.Context
	console     iter.Seq2[chromedp.ConsoleMessage, error]
	silence     context.CancelFunc // ends the console
}

// step is an action without a result.
type step = chromedp.Action[chromedp.Void]

// open starts a limitgate with the sample limits and opens its page.
func open(t *testing.T) *site {
	t.Helper()
	s := start(t, "examples/limits.yaml")
	s.visit(t, s.admin)
	return s
}

// start starts a limitgate with a limits file and flags.
func start(t *testing.T, limits string, flags ...string) *site {
	t.Helper()
	s := &site{}
	cmd := exec.CommandContext(t.Context(), *program, append([]string{"serve", "--limits", limits, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, flags...)...)
	cmd.Dir = root
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start limitgate, which make build makes: %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := regexp.MustCompile(`msg=listening addr=(\S+) admin=(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			s.addr, s.admin = m[1], m[2]
			break
		}
	}
	go func() {
		for lines.Scan() { // so that the log never blocks
		}
	}()
	if s.admin == "" {
		t.Fatal("limitgate did not start")
	}
	return s
}

// visit opens the page at an address in a browser.
func (s *site) visit(t *testing.T, addr string) {
	t.Helper()
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 900))...)
	t.Cleanup(cancel)
	s.browser, cancel = chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	if err := chromedp.Do(s.browser); err != nil { // starts the browser, which must outlive each call
		t.Fatalf("start Chromium, which make browser gets: %v", err)
	}
	listening, silence := context.WithCancel(s.browser)
	s.console, s.silence = chromedp.Console(listening), silence
	s.do(t, chromedp.Navigate("http://"+addr+"/"), chromedp.WaitVisible(`#live[data-state="live"]`))
}

// do runs steps, which together may take some seconds.
func (s *site) do(t *testing.T, steps ...step) {
	t.Helper()
	ctx, cancel := context.WithTimeout(s.browser, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// eval returns the value of an expression.
func eval[T any](t *testing.T, s *site, expression string, opts ...chromedp.EvaluateOption) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(s.browser, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, opts...))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// text returns the text of an element.
func (s *site) text(t *testing.T, selector string) string {
	t.Helper()
	return eval[string](t, s, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// submit sends a form, as its button does.
func submit(form string) step {
	return chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector(%q).requestSubmit()", form))
}

// until waits until an expression is true.
func until(expression string) step { return chromedp.Poll[chromedp.Void](expression) }

// check sends checks.
func (s *site) check(t *testing.T, n int, words ...string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var request bytes.Buffer
	for range n {
		fmt.Fprintf(&request, "*%d\r\n", len(words)+1)
		for _, w := range append([]string{"RL.CHECK"}, words...) {
			fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	if _, err := conn.Write(request.Bytes()); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for range n {
		if line, err := in.ReadString('\n'); err != nil || line[0] != '*' {
			t.Fatalf("got %q: %v", line, err)
		}
		for range 5 {
			_, _ = in.ReadString('\n')
		}
		for range 4 {
			_, _ = in.ReadString('\n')
		}
	}
}

// TestPage walks through the page as an operator would: a denial shows up, its limit says what it
// is, the form explains it, and the simulator counts as the maths do.
func TestPage(t *testing.T) {
	s := open(t)
	const hostile = `<img src=x onerror=alert(1)>`
	begin := time.Now()
	s.check(t, 800, "initech", "GET /v1/products", "203.0.113.7")
	s.check(t, 300, hostile, hostile, "203.0.113.8")
	s.do(t, chromedp.WaitVisible(`//table[@id="table-denials"]//button[text()="initech"]`))
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("a denial was seen after %s", took)
	}

	s.do(t, chromedp.Click(`//table[@id="table-limits"]//button[text()="tenant"]`), chromedp.WaitVisible("#limit-about table"))
	if title, about := s.text(t, "#limit-title"), s.text(t, "#limit"); title != "Limit tenant" || !strings.Contains(about, "100/s burst 200") || !strings.Contains(about, "initech") {
		t.Errorf("%s: %s", title, about)
	}

	s.do(t, chromedp.Click(`//table[@id="table-denials"]//button[text()="initech"]`), chromedp.WaitVisible("#explain-result .verdict"))
	if got := s.text(t, "#explain-result"); !strings.Contains(got, "Plan free") || !strings.Contains(got, "100/s burst 200") {
		t.Errorf("explained as %s", got)
	}
	s.do(t, chromedp.SetValue(`#explain-form [name="ip"]`, "nowhere"), submit("#explain-form"),
		until(`document.querySelector("#explain-result").textContent.includes("invalid ip")`))

	s.simulate(t)
	s.walkSteps(t)

	if got := s.text(t, "#table-operations"); !strings.Contains(got, hostile) {
		t.Errorf("no operation is shown as the text %s: %s", hostile, got)
	}
	s.checkConsole(t)
}

// checkConsole checks that the browser reported nothing. It hears no more afterwards.
func (s *site) checkConsole(t *testing.T) {
	t.Helper()
	s.silence()
	for m, err := range s.console {
		if err != nil {
			break
		}
		if !strings.Contains(m.URL, "/api/explain") { // the request that was meant to be refused
			t.Errorf("the console has: %s", m)
		}
	}
}

// simulate compares the simulator with a token bucket computed by hand: ten units at first and
// five a second, against eight requests a second for twenty seconds.
func (s *site) simulate(t *testing.T) {
	t.Helper()
	units, admitted := 10_000, 0
	for i := range 160 {
		if i > 0 {
			units = min(10_000, units+625)
		}
		if units >= 1000 {
			units -= 1000
			admitted++
		}
	}
	want := fmt.Sprintf("160 requests: %d admitted, %d denied", admitted, 160-admitted)
	if got := s.text(t, "#try-result"); !strings.HasPrefix(got, want) {
		t.Errorf("simulated %q, want %q", got, want)
	}
	// Two windows of two seconds, of 16 requests each, admit ten.
	s.do(t, chromedp.SetValue(`#try-form [name="algorithm"]`, "fixed_window"), chromedp.SetValue(`#try-form [name="seconds"]`, "4"), submit("#try-form"),
		until(`document.querySelector("#try-result").textContent.startsWith("32 requests: 20 admitted, 12 denied")`))
}

// walkSteps goes through the steps of a decision by keys.
func (s *site) walkSteps(t *testing.T) {
	t.Helper()
	s.do(t, chromedp.Focus("#steps"), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	if current := s.text(t, `#steps [aria-current="step"] strong`); current != "3. Deny from the cache" {
		t.Errorf("after two keys the step is %q", current)
	}
	if got := s.text(t, "#steps"); !strings.Contains(got, "checks a second") {
		t.Errorf("the steps have no figures: %s", got)
	}
}

// TestAccessible: axe-core finds nothing, in light and dark colours and on a phone, with tables
// that are full and with empty ones.
func TestAccessible(t *testing.T) {
	s := open(t)
	s.examine(t, "empty")
	s.check(t, 800, "initech", "GET /v1/products", "203.0.113.7")
	s.do(t, chromedp.WaitVisible(`//table[@id="table-denials"]//button[text()="initech"]`),
		chromedp.Click(`//table[@id="table-limits"]//button[text()="tenant"]`),
		chromedp.Click(`//table[@id="table-denials"]//button[text()="initech"]`), chromedp.WaitVisible("#explain-result .verdict"))
	s.examineAll(t)
}

// examineAll examines the page in light and dark colours and on a phone.
func (s *site) examineAll(t *testing.T) {
	t.Helper()
	s.examine(t, "light")
	s.darken(t)
	s.examine(t, "dark")
	s.do(t, chromedp.EmulateViewport(375, 667, chromedp.EmulateMobile))
	s.examine(t, "phone")
	if eval[bool](t, s, `document.documentElement.scrollWidth > document.documentElement.clientWidth`) {
		t.Error("the page is wider than a phone")
	}
}

// examine runs axe-core on the page as it is.
func (s *site) examine(t *testing.T, name string) {
	t.Helper()
	code, err := os.ReadFile(*axe)
	if err != nil {
		t.Fatalf("read axe-core, which make browser gets: %v", err)
	}
	eval[int](t, s, string(code)+"; 0")
	report := eval[string](t, s, `axe.run().then((r) => JSON.stringify(r.violations.map((v) => ({id: v.id, help: v.help, nodes: v.nodes.map((n) => n.html.slice(0, 150))}))))`, chromedp.EvalAwaitPromise)
	var violations []any
	if err := json.Unmarshal([]byte(report), &violations); err != nil || len(violations) > 0 {
		t.Errorf("%s: axe-core reports %s", name, report)
	}
}

// darken makes the browser ask for dark colours.
func (s *site) darken(t *testing.T) {
	t.Helper()
	_, err := chromedp.Call(s.browser, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
