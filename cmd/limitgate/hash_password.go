package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/limitgate/limitgate/internal/users"
)

// Bounds of a password that was chosen, in bytes. The most that a client may send before it
// has authenticated is 16 KiB.
const (
	minPassword = 12
	maxPassword = 1024
)

func runHashPassword(_ context.Context, env *environment, args []string) int {
	fs := newFlags(env, "hash-password",
		"Makes a password for the file of users (limitgate serve --users FILE), and the hash that\nbelongs into the file. A password of 256 random bits is hashed by SHA-256, as Redis does;\na chosen one, which could be guessed, by Argon2id.",
		"limitgate hash-password", "limitgate hash-password --stdin < password.txt")
	fromStdin := fs.Bool("stdin", false, "hash the first line of the standard input, of 12 bytes at least, instead of a generated password")
	asJSON := fs.Bool("json", false, "print JSON")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if fs.NArg() > 0 {
		fmt.Fprintln(env.stderr, "limitgate hash-password: it takes no password as an argument, which other users of the machine could read: write it to the standard input, with --stdin")
		return exitUsage
	}
	var made struct {
		Password string `json:"password,omitempty"`
		Rule     string `json:"rule"`
	}
	if !*fromStdin && isPipe(env.stdin) {
		printWarnings(env, fs.Name(), []string{"a password is generated, and none read from standard input: --stdin hashes its first line"})
	}
	if *fromStdin {
		chosen, err := readPasswordLine(env.stdin)
		if err != nil {
			fmt.Fprintf(env.stderr, "limitgate hash-password: %s\n", err)
			return exitError
		}
		made.Rule = users.HashPassword(chosen)
	} else {
		made.Password, made.Rule = users.GenerateSecret()
	}
	switch {
	case *asJSON:
		_ = json.NewEncoder(env.stdout).Encode(made)
	case made.Password != "":
		fmt.Fprintf(env.stdout, "password %s\nrule     %s\n", made.Password, made.Rule)
	default:
		fmt.Fprintln(env.stdout, made.Rule)
	}
	return exitOK
}

// readPasswordLine reads the first line.
func readPasswordLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, maxPassword+2)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("read password: %w", err)
	}
	line = strings.TrimRight(line, "\r\n")
	switch {
	case len(line) < minPassword:
		return "", fmt.Errorf("the password has %d bytes, and at least %d are needed; without --stdin one is generated", len(line), minPassword)
	case len(line) > maxPassword:
		return "", fmt.Errorf("the password has more than %d bytes", maxPassword)
	}
	return line, nil
}

// isPipe reports whether a standard input is a pipe or a file.
func isPipe(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && (info.Mode()&os.ModeNamedPipe != 0 || info.Mode().IsRegular())
}
