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

// headers are replacements for the parameters of a token bucket in its value, with the
// separators of either format.
var headers = []string{
	"0/0/0", "1/0/5", "0/1/5", "1/1/0", "18446744073709551616/1/1", "1/18446744073709551616/1", "1/1/18446744073709551616",
	strings.Repeat("9", 400) + "/1/1", "1/" + strings.Repeat("9", 400) + "/1", "-1/1/1", "1/1", "//", "1e3/1/1", "nan/1/1", "0x10/1/1",
}

// bucketShape describes the values of a bucket.
type bucketShape struct {
	numbers int    // how many doubles they have
	old     string // the text before them in format 1
}

// poisonValues returns replacements for the value of a bucket in its current format, by name.
func poisonValues(healthy string, shape bucketShape) map[string]string {
	values := commonPoison(healthy)
	values["huge"], values["huge of format 1"] = strings.Repeat("x", 1<<20), "\x01"+strings.Repeat("1", 1<<20)
	values["huge of format 3"] = strings.Repeat("\x93", 1<<20) + "\x03"
	first := 0
	if healthy[len(healthy)-1] != 3 {
		first = len(healthy) - 8*shape.numbers
	}
	poisonNumbers(values, healthy, first, shape.numbers)
	text := healthy[min(len(healthy), 8*shape.numbers):] // behind the numbers, which may have any byte
	if name := strings.IndexByte(text, '}'); first == 0 && name >= 0 {
		end := strings.IndexByte(text, ';')
		if end < name { // the text begins with a name that contains it
			end = name + strings.IndexByte(text[name:], ';')
		}
		for _, h := range headers {
			values["parameters "+h[:min(len(h), 24)]] = healthy[:8*shape.numbers] + text[:name+1] + "/" + h + text[end:]
		}
		for _, offset := range []string{"1", "2", "3", "99", "8191", "99999999999999999999", strings.Repeat("9", 400), "x"} {
			values["offset "+offset[:min(len(offset), 24)]] = healthy[:8*shape.numbers] + text[:name+1] + offset + text[name+1:]
		}
		for _, n := range []string{"\x00\x00", "\x01\x00", "\x03\x00", "\x00\x01", "\xff\xff"} {
			values[fmt.Sprintf("%x doubles", n)] = healthy[:len(healthy)-3] + n + "\x03"
		}
		values["no name"] = healthy[:8*shape.numbers] + text[name:]
		values["many fields"] = healthy[:8*shape.numbers] + strings.Repeat(text[:end+1], 20_000) + text[len(text)-3:]
		values["many other fields"] = healthy[:8*shape.numbers] + strings.Repeat(";:x;t}", 20_000) + text[len(text)-3:]
	}
	return values
}

// oldPoison returns replacements for the value of a bucket in format 1.
func oldPoison(shape bucketShape) map[string]string {
	numbers := strings.Repeat("\x00\x00\x00\x00\x00\x00\xf0\x3f", shape.numbers)
	healthy := "\x01" + shape.old + numbers
	values := commonPoison(healthy)
	poisonNumbers(values, healthy, len(healthy)-8*shape.numbers, shape.numbers)
	if shape.old != "" {
		for _, h := range headers {
			values["header "+h[:min(len(h), 24)]] = "\x01" + h + ";" + numbers
		}
	}
	return values
}

// commonPoison returns replacements for a value in any format.
func commonPoison(healthy string) map[string]string {
	values := map[string]string{
		"empty": "", "a word": "hello", "a number": "17", "24 NULs": strings.Repeat("\x00", 24), "49 NULs": strings.Repeat("\x00", 49),
		"no period": "\x011/0/5;" + strings.Repeat("\x00", 24), "no period, short": "\x011/0/5;" + strings.Repeat("\x00", 16),
		"format 2": "\x02" + healthy[1:], "format 255": "\xff" + healthy[1:], "format 0": "\x00" + healthy[1:],
		"later format": healthy[:len(healthy)-1] + "\x04", "only a format": "\x03", "no fields": "\x00\x00\x03", "no numbers": "\xff\xff\x03",
		"twice":               healthy + healthy,
		"text without a name": strings.Repeat("x", 8000) + "\x00\x00\x03", "long text without a name": strings.Repeat("x", 65_000) + "\x00\x00\x03",
		"text of digits":      strings.Repeat("x", 1000) + "}" + strings.Repeat("1", 1000) + "\x00\x00\x03",
		"text of many digits": strings.Repeat("x", 1000) + "}" + strings.Repeat("1", 7000) + "\x00\x00\x03",
	}
	for n := range len(healthy) {
		values[fmt.Sprintf("cut to %d", n)] = healthy[:n]
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		b := make([]byte, random.IntN(80))
		for j := range b {
			b[j] = byte(random.IntN(256))
		}
		if i%2 == 0 && len(b) > 0 {
			b[0], b[len(b)-1] = 1, 3
		}
		values[fmt.Sprintf("random %d", i)] = string(b)
	}
	return values
}

// poisonNumbers adds values in which one of n doubles, which begin at first, is extreme.
func poisonNumbers(values map[string]string, healthy string, first, n int) {
	for at := first; at < first+8*n; at += 8 {
		for _, number := range extremes {
			b := []byte(healthy)
			binary.LittleEndian.PutUint64(b[at:], math.Float64bits(number))
			values[fmt.Sprintf("%g at %d", number, at)] = string(b)
		}
	}
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
		args := make([]any, len(words))
		for i, w := range words {
			if args[i] = w; w == "KEY" {
				args[i] = key
			}
		}
		_, err := c.TxPipelined(tb.Context(), func(tx redis.Pipeliner) error { // a heartbeat may write the key, too
			tx.Del(tb.Context(), key)
			tx.Do(tb.Context(), args...)
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) {
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
