package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/limitgate/limitgate/internal/servers"
)

// admin is a client of a proxy's admin address.
type admin struct {
	client *http.Client
	base   string // URL of the address
}

// newAdmin returns the client for a proxy. A proxy whose clients use TLS has it here too;
// without TLS, e is nil.
func newAdmin(proxy *servers.Limitgate, e *encryption) *admin {
	if e == nil {
		return &admin{client: http.DefaultClient, base: "http://" + proxy.Admin}
	}
	transport := &http.Transport{TLSClientConfig: e.client.Clone()}
	return &admin{client: &http.Client{Transport: transport}, base: "https://" + proxy.Admin}
}

// get returns the content of a page. The caller closes it.
func (a *admin) get(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("get %s: %s", path, response.Status)
	}
	return response.Body, nil
}

// metrics reads the metrics, by name and labels in their text form.
func (a *admin) metrics(ctx context.Context) (map[string]float64, error) {
	text, err := a.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	defer func() { _ = text.Close() }()
	return parseMetrics(text)
}

// collect makes the proxy collect its garbage. The proxy needs --pprof.
func (a *admin) collect(ctx context.Context) error {
	content, err := a.get(ctx, "/debug/pprof/heap?gc=1")
	if err != nil {
		return err
	}
	return content.Close()
}

// profile writes a CPU profile of some seconds to a file.
func (a *admin) profile(ctx context.Context, seconds int, path string) error {
	content, err := a.get(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds))
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	_, err = io.Copy(file, content)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}
