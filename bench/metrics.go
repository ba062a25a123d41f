package bench

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

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
