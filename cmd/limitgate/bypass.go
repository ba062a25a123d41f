package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/bypass"
	"github.com/limitgate/limitgate/limit/bucket"
)

const bypassAbout = `Makes tokens that let requests pass the limits, and the keys that sign them.

Usage:

	limitgate bypass key --id ID PRIVATE JWKS
	limitgate bypass token --key FILE --id ID --name TEXT --rate RATE --for TIME [--burst UNITS] [--tenant TENANT]

key writes a new private key to the new file PRIVATE, and adds the public one to
the file JWKS, for limitgate serve --bypass-jwks.

token prints a token for the option BYPASS of RL.CHECK. The rate is that of all
requests with the token together: beyond it the limits decide.

Both exit with 0 when it is done, 1 when not, and 64 when the arguments are wrong.`

// keyHeader is the header in PEM with the id of a key.
const keyHeader = "Kid"

// maxKeyFile bounds the file of a private key, in bytes.
const maxKeyFile = 16 << 10

// bypassCommands are the commands of bypass.
func bypassCommands() []subcommand {
	return []subcommand{{name: "key", run: runBypassKey}, {name: "token", run: runBypassToken}}
}

func runBypass(ctx context.Context, env *environment, args []string) int {
	for _, c := range bypassCommands() {
		if len(args) > 0 && args[0] == c.name {
			return c.run(ctx, env, args[1:])
		}
	}
	fs := newFlags(env, "bypass", bypassAbout, bypassExamples...)
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	fmt.Fprintln(env.stderr, "limitgate bypass: "+noCommand(fs, bypassCommands())+"say key or token, such as "+bypassExamples[0]+"; limitgate bypass --help says more")
	return exitUsage
}

var bypassExamples = []string{
	"limitgate bypass key --id 2026 bypass.pem bypass.json",
	`limitgate bypass token --key bypass.pem --id load-7 --name "load test of search" --rate 1000/s --for 8h`,
}

func runBypassKey(_ context.Context, env *environment, args []string) int {
	fs := newFlags(env, "bypass key", bypassAbout, bypassExamples...)
	id := fs.String("id", "", "`id` of the key, by which its tokens name it")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if *id == "" || fs.NArg() != 2 {
		fmt.Fprintln(env.stderr, "limitgate bypass key: --id, and behind it the files of the private key and of the JWKS are needed; limitgate bypass key --help says more")
		return exitUsage
	}
	if err := bypass.CheckID(*id); err != nil {
		fmt.Fprintf(env.stderr, "limitgate bypass key: --id %s; limitgate bypass key --help says more\n", err)
		return exitUsage
	}
	if err := makeKey(*id, fs.Arg(0), fs.Arg(1)); err != nil {
		return fail(env, err)
	}
	return exitOK
}

// makeKey writes a new private key, and adds the public one to a JWKS.
func makeKey(id, private, jwksPath string) error {
	set, err := readJWKS(jwksPath)
	if err != nil {
		return err
	}
	for _, k := range set.Keys {
		if k["kid"] == id {
			return fmt.Errorf("add key: %s has a key %s: choose another id", jwksPath, id)
		}
	}
	public, err := writeKey(private, id)
	if err != nil {
		return err
	}
	set.Keys = append(set.Keys, map[string]any{
		"kid": id, "use": "sig", "alg": "EdDSA", "kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(public),
	})
	text, err := json.MarshalIndent(set, "", "  ")
	if err == nil {
		err = os.WriteFile(jwksPath+".new", append(text, '\n'), 0o644)
	}
	if err == nil {
		err = os.Rename(jwksPath+".new", jwksPath) // a proxy must not read half of it
	}
	if err != nil {
		return fmt.Errorf("add key to JWKS: %w", err)
	}
	return nil
}

// jwksFile is the content of a JWKS.
type jwksFile struct {
	Keys []map[string]any `json:"keys"`
}

// readJWKS reads a JWKS. One that does not exist is empty.
func readJWKS(path string) (set jwksFile, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return set, nil
	}
	if err != nil {
		return set, fmt.Errorf("read JWKS: %w", err)
	}
	if err := json.Unmarshal(content, &set); err != nil || set.Keys == nil { // rewriting another file would lose its content
		return set, fmt.Errorf(`read JWKS: %s is not JSON of the form {"keys": [...]}: name a JWKS that limitgate bypass key has made, or a new file`, path)
	}
	return set, nil
}

// writeKey writes a new private key to a new file, and returns the public one.
func writeKey(path, id string) (ed25519.PublicKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write key: %w", err)
	}
	err = pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Headers: map[string]string{keyHeader: id}, Bytes: der})
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("write key: %w", err)
	}
	return public, nil
}

// readKey reads a private key, and its id.
func readKey(path string) (key ed25519.PrivateKey, id string, err error) {
	content, err := config.ReadFile(path, maxKeyFile)
	if err != nil {
		return nil, "", fmt.Errorf("read key: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil || block.Headers[keyHeader] == "" {
		if set := (jwksFile{}); json.Unmarshal(content, &set) == nil && set.Keys != nil {
			return nil, "", fmt.Errorf("read key %s: it has the public keys, which serve --bypass-jwks takes: name the file of the private key", path)
		}
		return nil, "", fmt.Errorf("read key %s: it is not a key that limitgate bypass key has made", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, "", fmt.Errorf("read key %s: %w", path, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, "", fmt.Errorf("read key %s: it is not a key of Ed25519", path)
	}
	return key, block.Headers[keyHeader], nil
}

func runBypassToken(_ context.Context, env *environment, args []string) int {
	fs := newFlags(env, "bypass token", bypassAbout, bypassExamples...)
	var c bypass.Claims
	key := fs.String("key", "", "`file` of the private key")
	fs.StringVar(&c.ID, "id", "", "`id` of the token, for the log and to revoke it")
	fs.StringVar(&c.Name, "name", "", "`purpose` of the token, for the log")
	fs.StringVar(&c.Rate, "rate", "", "`rate` of the units that it admits, such as 100/s")
	fs.Int64Var(&c.Burst, "burst", 0, "`units` that it admits at once (those of one period)")
	fs.StringVar(&c.Tenant, "tenant", "", "the only `tenant` that it is for (any)")
	var life lifeFlag
	fs.Var(&life, "for", "`time` until it ends, such as 8h")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if problem := tokenProblem(fs, *key, &c, time.Duration(life)); problem != "" {
		fmt.Fprintf(env.stderr, "limitgate bypass token: %s; limitgate bypass token --help says more\n", problem)
		return exitUsage
	}
	now := time.Now()
	c.IssuedAt, c.ExpiresAt = jwt.NewNumericDate(now), jwt.NewNumericDate(now.Add(time.Duration(life)))
	private, keyID, err := readKey(*key)
	if err != nil {
		return fail(env, err)
	}
	token, err := bypass.Sign(private, keyID, &c)
	if err != nil {
		return fail(env, config.Mistake(err.Error()))
	}
	fmt.Fprintln(env.stdout, token)
	return exitOK
}

// lifeFlag is how long a token is valid.
type lifeFlag time.Duration

func (l *lifeFlag) String() string { return "" }

// Set parses a duration.
func (l *lifeFlag) Set(text string) error {
	life, err := time.ParseDuration(text)
	if err != nil {
		return errors.New(config.NotDuration(text, "8h", bypass.MaxLife))
	}
	*l = lifeFlag(life)
	return nil
}

// tokenProblem returns what is wrong with the flags of a token, or "".
func tokenProblem(fs *flag.FlagSet, key string, c *bypass.Claims, life time.Duration) string {
	for _, f := range []struct{ name, value string }{{"key", key}, {"id", c.ID}, {"name", c.Name}, {"rate", c.Rate}} {
		if f.value == "" {
			return "--" + f.name + " is needed: " + bypassExamples[1]
		}
	}
	switch err := bypass.CheckID(c.ID); {
	case err != nil:
		return "--id " + err.Error()
	case c.Burst < 0 || c.Burst > bucket.MaxCapacity:
		return fmt.Sprintf("--burst is %d: write 1 to %d, or leave it out for the units of one period", c.Burst, int64(bucket.MaxCapacity))
	case life <= 0:
		return fmt.Sprintf("--for is needed, a time of at most %.0fh, such as 8h", bypass.MaxLife.Hours())
	case life > bypass.MaxLife:
		return fmt.Sprintf("--for is %.0fh, which is too long: at most %.0fh", life.Hours(), bypass.MaxLife.Hours())
	case fs.NArg() > 0:
		return fmt.Sprintf("%s is not a flag", config.Quote(fs.Arg(0)))
	}
	return ""
}
