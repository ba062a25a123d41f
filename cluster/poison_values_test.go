package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// extremes are numbers that no bucket contains.
var extremes = []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), -1, 0.5, 1 << 53, -(1 << 53), 1 << 63, -(1 << 63), math.MaxFloat64, 5e-324}

// headers are replacements for count/period/capacity at the start of a token bucket's
// value.
var headers = []string{
	"0/0/0", "1/0/5", "0/1/5", "1/1/0", "18446744073709551616/1/1", "1/18446744073709551616/1", "1/1/18446744073709551616",
	strings.Repeat("9", 400) + "/1/1", "1/" + strings.Repeat("9", 400) + "/1", "-1/1/1", "1/1", "//", "1e3/1/1", "nan/1/1", "0x10/1/1",
}

// poisonValues returns replacements for the value of a bucket, by name.
func poisonValues(healthy string) map[string]string {
	values := map[string]string{
		"empty": "", "a word": "hello", "a number": "17", "24 NULs": strings.Repeat("\x00", 24), "49 NULs": strings.Repeat("\x00", 49),
		"no period": "\x011/0/5;" + strings.Repeat("\x00", 24), "no period, short": "\x011/0/5;" + strings.Repeat("\x00", 16),
		"huge": strings.Repeat("x", 10<<20), "huge of format 1": "\x01" + strings.Repeat("1", 10<<20), "huge of format 2": "\x02" + strings.Repeat("\x93", 1<<20),
		"format 3": "\x03" + healthy[1:], "format 255": "\xff" + healthy[1:], "format 0": "\x00" + healthy[1:],
		"format 2, nothing": "\x02", "format 2, nil": "\x02\xc0", "format 2, empty": "\x02\x90", "format 2, words": "\x02\x96\xa1a\xa1a\xa1a\xa1a\xa1a\xa1a",
		"format 2, zeros": "\x02\x96\x00\x00\x00\x00\x00\x00", "format 2, negative": "\x02\x96\xff\xff\xff\xff\xff\xff", "format 2, deep": "\x02" + strings.Repeat("\x91", 5000) + "\xc0",
		"format 2, NaN": "\x02\x96" + strings.Repeat("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", 6), "format 2, wide": "\x02\xdd\xff\xff\xff\xff",
		"twice": healthy + healthy,
	}
	for n := range len(healthy) {
		values[fmt.Sprintf("cut to %d", n)] = healthy[:n]
	}
	begin := max(strings.IndexByte(healthy, ';')+1, 1)
	for at := begin; at+8 <= len(healthy); at += 8 {
		for _, n := range extremes {
			b := []byte(healthy)
			binary.LittleEndian.PutUint64(b[at:], math.Float64bits(n))
			values[fmt.Sprintf("%g at %d", n, at)] = string(b)
		}
	}
	if begin > 1 {
		for _, h := range headers {
			values["header "+h[:min(len(h), 24)]] = "\x01" + h + healthy[begin-1:]
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		b := make([]byte, random.IntN(80))
		for j := range b {
			b[j] = byte(random.IntN(256))
		}
		if i%2 == 0 && len(b) > 0 {
			b[0] = 1 + byte(random.IntN(2))
		}
		values[fmt.Sprintf("random %d", i)] = string(b)
	}
	return values
}

// scores are scores of members of sets of units, in Redis' notation.
var scores = []string{"inf", "-inf", "0", "-0", "-1", "0.5", "9007199254740992", "9223372036854775808", "1e308", "5e-324", "4102444800000000"}

// plant replaces the value of a key, and has a name for it.
type plant struct {
	name string
	put  func(tb testing.TB, c *redis.Client, key string)
}

// planted returns a plant that deletes the key and runs a command, in which KEY is
// replaced.
func planted(name string, words ...any) plant {
	return plant{name, func(tb testing.TB, c *redis.Client, key string) {
		tb.Helper()
		c.Del(tb.Context(), key)
		args := make([]any, len(words))
		for i, w := range words {
			if args[i] = w; w == "KEY" {
				args[i] = key
			}
		}
		if err := c.Do(tb.Context(), args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
			tb.Fatalf("plant %s: %v", name, err)
		}
	}}
}

// types are plants of all types of Redis.
var types = []plant{
	planted("a string", "SET", "KEY", "hello"), planted("a list", "RPUSH", "KEY", "a", "b"), planted("a set", "SADD", "KEY", "a", "b"),
	planted("a hash", "HSET", "KEY", "a", "b"), planted("a sorted set", "ZADD", "KEY", "1", "a"), planted("a stream", "XADD", "KEY", "*", "a", "b"),
	planted("a large hash", "EVAL", "for i = 1, 20000 do redis.call('HSET', KEYS[1], 'f' .. i, i) end", "1", "KEY"),
	planted("a large sorted set", "EVAL", "for i = 1, 20000 do redis.call('ZADD', KEYS[1], 4102444800000000, i) end", "1", "KEY"),
}

// sets are plants of sorted sets that hold no units.
func sets() []plant {
	var plants []plant
	for _, s := range scores {
		plants = append(plants, planted("score "+s, "ZADD", "KEY", s, "a", s, "b"))
	}
	return append(plants,
		planted("mixed scores", "ZADD", "KEY", "-inf", "a", "inf", "b", "1", "c", "4102444800000000", "d"),
		planted("a long member", "ZADD", "KEY", "4102444800000000", strings.Repeat("x", 1<<20)),
		planted("an empty member", "ZADD", "KEY", "4102444800000000", ""))
}
