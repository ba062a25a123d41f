package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// LibraryCommand is the argument with which the benchmark starts its own program as a
// library's process: see ServeLibrary.
const LibraryCommand = "library"

// libraryDriver makes rounds with a library in a process of its own.
type libraryDriver struct {
	command    *exec.Cmd
	input      io.WriteCloser
	output     *bufio.Scanner
	complaints bytes.Buffer
	parts      parts
	also       io.Closer // closed with the driver, or nil
}

// startLibrary starts the process for a job; p are the servers that it uses.
func startLibrary(job libraryJob, p parts, also io.Closer) (*libraryDriver, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	d := &libraryDriver{command: exec.Command(program, LibraryCommand), also: also}
	d.command.Stderr = &d.complaints
	if d.input, err = d.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("open input of library: %w", err)
	}
	output, err := d.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("open output of library: %w", err)
	}
	d.output = bufio.NewScanner(output)
	if err := d.command.Start(); err != nil {
		return nil, fmt.Errorf("start library: %w", err)
	}
	d.parts = p
	d.parts.client = []int{d.command.Process.Pid}
	if err := json.NewEncoder(d.input).Encode(job); err != nil {
		return nil, errors.Join(fmt.Errorf("tell library: %w", err), d.close())
	}
	return d, nil
}

func (d *libraryDriver) round(_ context.Context, length time.Duration) (*sample, error) {
	m, err := startMeter(d.parts)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintln(d.input, length.Nanoseconds()); err != nil {
		return nil, fmt.Errorf("tell library: %w", err)
	}
	// The process answers, or is gone: an interrupt reaches it as well.
	if !d.output.Scan() {
		return nil, fmt.Errorf("read round of library: it ended: %s", &d.complaints)
	}
	var r libraryRound
	if err := json.Unmarshal(d.output.Bytes(), &r); err != nil {
		return nil, fmt.Errorf("read round of library: %w", err)
	}
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	s := &sample{
		perSecond: float64(r.Decisions) / r.Seconds,
		decisions: r.Decisions,
		seconds:   r.Seconds,
		p50:       milliseconds(r.P50),
		p99:       milliseconds(r.P99),
		p999:      milliseconds(r.P999),
	}
	return s, m.stop(s)
}

// close ends the process by closing its input.
func (d *libraryDriver) close() error {
	_ = d.input.Close()
	err := d.command.Wait()
	if err != nil {
		err = fmt.Errorf("end library: %w: %s", err, &d.complaints)
	}
	if d.also != nil {
		err = errors.Join(err, d.also.Close())
	}
	return err
}
