//go:build pictures

package browser

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var pictures = flag.String("pictures", ".", "the folder for the pictures")

// TestPictures writes pictures of the page under the traffic of the demo.
func TestPictures(t *testing.T) {
	s := open(t)
	demo := exec.CommandContext(t.Context(), "go", "run", "./examples/demo", "--addr", s.addr, "--for", "1m")
	demo.Dir = root
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = demo.Process.Signal(os.Interrupt); _ = demo.Wait() })
	s.do(t, chromedp.Poll[chromedp.Void](`document.querySelector("#chart-decisions").textContent.includes("45 s ago")`, chromedp.WithPollingTimeout(0)))
	take := func(name string, steps ...step) {
		s.do(t, append(steps, chromedp.Sleep(1500*time.Millisecond))...)
		picture, err := chromedp.Run(s.browser, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*pictures, name), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	show := func(id string) step {
		return chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.getElementById(%q).scrollIntoView({behavior: 'instant'})", id))
	}
	take("dashboard.png", chromedp.EmulateViewport(1200, 780))
	take("dashboard-denials.png", show("denials"))
	take("dashboard-try.png", show("try"))
	s.darken(t)
	take("dashboard-dark.png", show("overview"))
}
