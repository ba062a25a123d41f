package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/internal/servers"
)

// scrape reads the metrics of a limitgate, by name and labels in their text form.
func scrape(ctx context.Context, proxy *servers.Limitgate) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+proxy.Admin+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("ask for metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for metrics: %s", response.Status)
	}
	return parseMetrics(response.Body)
}

// parseMetrics parses the lines "name{labels} value" of Prometheus' text format.
func parseMetrics(from io.Reader) (map[string]float64, error) {
	metrics := make(map[string]float64)
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("read metrics: %w", err)
		}
		metrics[line[:at]] = value
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return metrics, nil
}
