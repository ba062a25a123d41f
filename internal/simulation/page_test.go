package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	update = flag.Bool("update", false, "write the figures into docs/simulation.md")
	show   = flag.Bool("show", false, "print them")
)

// pageSeed is the seed of the figures on the page.
const pageSeed = 1

func pageRandom(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(pageSeed, stream)) }

// TestFleet runs all scenarios, checks their guarantees, and compares the page with the
// results.
func TestFleet(t *testing.T) {
	figures(t, "fleet", fleetTable(t, pageSeed).String())
}

// TestProbes: breakers that opened together drift apart, and would not without their
// randomness. It compares the page with the result.
func TestProbes(t *testing.T) {
	if most, _ := probeTogether(func() float64 { return 0 }).shape(); float64(most) <= mostProbes {
		t.Errorf("without randomness only %d of %d probes in 10 ms", most, proxyCount)
	}
	probes := probeTogether(pageRandom(3).Float64)
	most, mean := probes.shape()
	if probes.total() != proxyCount || float64(most) > mostProbes || float64(most) > 3*mean {
		t.Errorf("%d probes, %d in 10 ms, %.1f in the mean; the bound is %v", probes.total(), most, mean, mostProbes)
	}
	figures(t, "probes", fmt.Sprintf("```\n%s```\n\n%d at most in 10 ms, %.1f in the mean.\n", probes.bars(), most, mean))
}

// TestClients checks the guarantees for clients that wait for retry_after, and compares
// the page with the results of all.
func TestClients(t *testing.T) {
	out := table{headCrowd}
	bars := ""
	for _, c := range crowds {
		r := runCrowd(t, pageSeed, c.wait)
		c.check(t, &r)
		out.row(c.row(&r)...)
		bars += fmt.Sprintf("\nFirst retries of clients with %s:\n\n```\n%s```\n", c.name, r.first.bars())
	}
	figures(t, "clients", out.String()+bars)
}

// figures compares a part of the page with the results, or writes it there.
func figures(t *testing.T, name, text string) {
	t.Helper()
	if *show {
		fmt.Println(text)
	}
	path := filepath.Join("..", "..", "docs", "simulation.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), "<!-- "+name+" -->\n")
	was, after, ends := strings.Cut(rest, "<!-- end -->\n")
	if !begins || !ends {
		t.Fatalf("%s has no place for %s", path, name)
	}
	if was == text {
		return
	}
	if !*update {
		t.Errorf("this is not what stands in %s (-update writes it):\n%s", path, text)
		return
	}
	whole := before + "<!-- " + name + " -->\n" + text + "<!-- end -->\n" + after
	if err := os.WriteFile(path, []byte(whole), 0o644); err != nil {
		t.Fatal(err)
	}
}
