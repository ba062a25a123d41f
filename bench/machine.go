package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/internal/servers"
)

// Machine describes the machine and the software of a measurement.
type Machine struct {
	CPU       string  `json:"cpu"`
	Cores     int     `json:"cores"`
	Memory    float64 `json:"memory_gib"`
	Kernel    string  `json:"kernel"`
	Go        string  `json:"go"`
	Redis     string  `json:"redis"`
	Limitgate string  `json:"limitgate"`
	// Load is the load average of the minute before.
	Load string `json:"load_before"`
}

func readMachine(limitgate string) (Machine, error) {
	m := Machine{
		CPU:    "unknown",
		Cores:  runtime.NumCPU(),
		Go:     runtime.Version(),
		Memory: float64(memInfo("MemTotal")) / (1 << 30),
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if model := colonField(text, "model name"); model != "" {
			m.CPU = model
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = runtime.GOOS + " " + strings.TrimSpace(string(text))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(text), " ")
	}
	redis, err := servers.Binary("redis-server")
	if err != nil {
		return m, err
	}
	if m.Redis, err = firstLine(redis, "--version"); err != nil {
		return m, err
	}
	for _, word := range strings.Fields(m.Redis) {
		if version, found := strings.CutPrefix(word, "v="); found {
			m.Redis = version
		}
	}
	m.Limitgate, err = firstLine(limitgate, "version")
	m.Limitgate = strings.TrimPrefix(m.Limitgate, "limitgate ")
	return m, err
}

// firstLine runs a program and returns the first line it prints.
func firstLine(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("run %s: %w", name, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line), nil
}

// colonField returns the value of the first line "name : value".
func colonField(text []byte, name string) string {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		key, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// memInfo returns a line of /proc/meminfo in bytes, or 0.
func memInfo(name string) int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return kibField(text, name)
}

// procMemory returns a line of /proc/PID/status in bytes, for example VmRSS.
func procMemory(pid int, name string) (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("read memory of process: %w", err)
	}
	n := kibField(text, name)
	if n == 0 {
		return 0, fmt.Errorf("read memory of process: no %s", name)
	}
	return n, nil
}

// kibField returns the value of a line "name: 123 kB" in bytes, or 0.
func kibField(text []byte, name string) int64 {
	number, _, _ := strings.Cut(colonField(text, name), " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
