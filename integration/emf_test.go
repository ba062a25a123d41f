package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/limitgate/limitgate/internal/emf/emftest"
	"github.com/limitgate/limitgate/internal/redistest"
)

const emfLimits = `
version: 1
default_plan: free
plans:
  free:
    - {id: tenant, by: [tenant], rate: RATE}
    - {id: pay, by: [tenant], when: {op: "POST /pay*"}, rate: 2/h, group: pay}
    - {id: watched, by: [tenant], rate: 1/h, mode: shadow, group: w}
tenants:
  customer-seven: {plan: free, overrides: {tenant: {rate: 3/h}}}
shared:
  - {id: ip, by: [ip], rate: 30/10m, on_error: open}
`

// TestEMF checks that the lines in a file, which is rotated away meanwhile, add up to the answers that
// clients got, over a change of the limits and to the end of the proxy, and that they name neither a
// tenant nor an address.
func TestEMF(t *testing.T) {
	path := filepath.Join(t.TempDir(), "emf.json")
	limits := writeLimits(t, strings.Replace(emfLimits, "RATE", "5/h", 1))
	p := serve(t, limits, append([]string{"--emf", "file:" + path, "--emf-service", "shop"}, exact...)...)
	c := p.client()
	tenants, addrs := []string{"customer-seven", "customer-eight"}, []string{"203.0.113.77", "2001:db8:1234:5678::42"}
	want, requests := map[string]float64{}, 0
	round := func() {
		for i := range 40 {
			op := []string{"GET /x", "POST /pay"}[i/2%2]
			v, err := check(c, tenants[i%2], op, addrs[i/4%2])
			if err != nil {
				t.Fatal(err)
			}
			requests++
			if v.allowed {
				want[v.id+" Allowed"]++
			} else {
				want[v.id+" Denied"]++
			}
		}
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	round()
	eventually(t, "a line of the first round", func() bool { return strings.Contains(read(path), `"Limit":"tenant"`) })
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	replace(t, limits, strings.Replace(emfLimits, "RATE", "50/h", 1))
	eventually(t, "the changed limits", func() bool {
		v, err := check(c, "customer-eight", "GET /x", "-")
		if err != nil {
			t.Fatal(err)
		}
		requests++
		want[v.id+map[bool]string{true: " Allowed", false: " Denied"}[v.allowed]]++
		return v.limit == 50
	})
	eventually(t, "a line in the new file", func() bool { _, err := os.Stat(path); return err == nil })
	round()
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	text := read(path+".1") + read(path)
	lines := emftest.CheckAll(t, text)
	for name, n := range want {
		limit, metric, _ := strings.Cut(name, " ")
		if sum := emftest.Sum(lines, limit, metric); limit != "" && sum != n {
			t.Errorf("%s is %v in the lines, and %v to clients", name, sum, n)
		}
	}
	if n := emftest.Sum(lines, "", "Decisions"); n != float64(requests) {
		t.Errorf("%v decisions of %d requests", n, requests)
	}
	if n := emftest.Sum(lines, "watched", "WouldDeny"); n != float64(requests-len(tenants)) {
		t.Errorf("the shadow limit would have denied %v of %d requests", n, requests)
	}
	checkEMFContent(t, lines, text, tenants, addrs)
}

// checkEMFContent checks dimensions and properties, and that no line names a tenant or an address.
func checkEMFContent(t *testing.T, lines []emftest.Line, text string, tenants, addrs []string) {
	t.Helper()
	ops := map[any]int{}
	for _, l := range lines {
		if l.Dimensions["Service"] != "shop" || l.Namespace != "Limitgate" {
			t.Fatalf("%+v", l)
		}
		if l.Dimensions["Limit"] == "pay" {
			ops[fmt.Sprint(l.Properties["plan"], " ", l.Properties["op"])]++
		}
	}
	if len(ops) != 1 || ops["free POST /pay*"] == 0 {
		t.Errorf("the descriptions of the limit are %v", ops)
	}
	for _, tenant := range tenants {
		if strings.Contains(text, tenant) {
			t.Errorf("lines name the tenant %s", tenant)
		}
	}
	for _, addr := range addrs {
		for _, form := range formsOf(addr) {
			if bytes.Contains([]byte(text), form) {
				t.Errorf("lines have the address %s as %q", addr, form)
			}
		}
	}
}

// readEMF returns the whole lines in a file.
func readEMF(t *testing.T, path string) []emftest.Line {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return emftest.CheckAll(t, string(text[:bytes.LastIndexByte(text, '\n')+1]))
}

// TestEMFOutage checks that lines count what an outage of the Redis causes.
func TestEMFOutage(t *testing.T) {
	node, path := redistest.Start(t), filepath.Join(t.TempDir(), "emf.json")
	p := serve(t, writeLimits(t, limitOf("1000000/h")), "--redis", node.Addr, "--emf", "file:"+path)
	c := p.client()
	ask := func() (source string) {
		v, err := check(c, "t", "-", "-")
		if err != nil {
			t.Fatal(err)
		}
		return v.source
	}
	eventually(t, "a decision with the Redis", func() bool { return ask() != "backstop" })
	node.Kill()
	for _, metric := range []string{"StoreErrors", "Backstop", "OpenBreakers"} {
		eventually(t, metric, func() bool {
			ask()
			return emftest.Sum(readEMF(t, path), "", metric) > 0
		})
	}
}

// TestEMFCell checks that the lines of a proxy in a cell have the cells, and its part of the limits.
func TestEMFCell(t *testing.T) {
	site, path := newSite(t), filepath.Join(t.TempDir(), "emf.json")
	site.push(tableLimits(t, ""), "ann")
	p := site.serveCell("a", "--emf", "file:"+path)
	v, err := check(p.client(), "t", "-", "-")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the line of the limit", func() bool { return emftest.Sum(readEMF(t, path), v.id, "PerCellLimit") > 0 })
	if lines := readEMF(t, path); emftest.Sum(lines[:1], "", "ActiveCells") != 1 {
		t.Errorf("%+v", lines[0])
	}
}

// TestEMFStdout checks that standard output has lines of metrics alone, and that decisions go on
// without its reader.
func TestEMFStdout(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binaries.release, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--emf", "stdout")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, found := launch(t, cmd, listening)
	p.addr, p.admin = found[1], found[2]
	r := bufio.NewReader(stdout)
	for range 2 {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if l := emftest.CheckAll(t, line)[0]; l.Dimensions["Service"] != "limitgate" || l.Metrics["Decisions"][0] != 0 {
			t.Errorf("%+v", l)
		}
	}
	_ = stdout.Close()
	eventually(t, "a failure to write", func() bool { return strings.Contains(p.output(), "failed to write lines of metrics") })
	if _, err := check(p.client(), "t", "-", "-"); err != nil {
		t.Error(err)
	}
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}
