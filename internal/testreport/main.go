package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	arguments := os.Args[1:]
	var err error
	switch {
	case len(arguments) > 3 && arguments[0] == "run":
		err = runPart(arguments[1], arguments[2], arguments[3:])
	case len(arguments) == 2 && arguments[0] == "close":
		err = closeParts(arguments[1])
	default:
		fmt.Fprintln(os.Stderr, "usage: testreport run RESULTS PART ARGUMENTS... | close RESULTS")
		os.Exit(2)
	}
	if err != nil && !errors.Is(err, errFailed) {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if err != nil {
		os.Exit(1)
	}
}

// runPart runs go test with arguments, and stores its result.
func runPart(folder, name string, arguments []string) error {
	log, err := os.Create(filepath.Join(folder, name+".log"))
	if err != nil {
		return err
	}
	p := &part{
		all:       os.Getenv("LIMITGATE_ALL") == "1",
		arguments: arguments,
		environ:   os.Environ(),
		log:       log,
		screen:    &screen{out: os.Stdout, terminal: isTerminal(os.Stdout)},
	}
	r, err := p.run()
	return errors.Join(err, log.Close(), r.keep(folder, name))
}

// closeParts prints the sum of the parts.
func closeParts(folder string) error {
	sum, err := merge(folder)
	if err != nil {
		return err
	}
	fmt.Print(sum.form())
	if len(sum.Failed) > 0 {
		return errFailed
	}
	return nil
}
