package cluster

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/prelude.lua
var preludeLua string

//go:embed scripts/fast_single.lua
var fastSingleLua string

//go:embed scripts/fast_window.lua
var fastWindowLua string

//go:embed scripts/fields.lua
var fieldsLua string

//go:embed scripts/limits.lua
var limitsLua string

//go:embed scripts/rest.lua
var restLua string

//go:embed scripts/fast_multi.lua
var fastMultiLua string

//go:embed scripts/bucket.lua
var bucketLua string

//go:embed scripts/hashes.lua
var hashesLua string

//go:embed scripts/expiring_units.lua
var expiringUnitsLua string

//go:embed scripts/general.lua
var generalLua string

//go:embed scripts/refund_settle.lua
var refundSettleLua string

//go:embed scripts/main.lua
var mainLua string

// lazily wraps a text that returns a function: the text runs at the first call.
const lazily = `
local made_NAME
local function NAME(...)
  made_NAME = made_NAME or (function()
TEXT
  end)()
  return made_NAME(...)
end
`

// lazilyOnce wraps a text that returns a value: the text runs at the first use.
const lazilyOnce = `
local made_NAME
local function NAME()
  made_NAME = made_NAME or (function()
TEXT
  end)()
  return made_NAME
end
`

// clockLine is the only line in which the script reads the clock. Tests run a text in which
// only this line differs.
const clockLine = "local time = redis.call('TIME') -- the only clock\n"

// formatLine is the only line that sets the format of new buckets.
const formatLine = "local WRITE_FORMAT = 3 -- the format of new buckets, see bucket.lua\n"

// nested makes a text a function of its own inside of another: Lua searches the variables
// that a function shares with the one around it each time that it makes it, but it copies
// those that both share with one further out.
const nested = `
return (function()
TEXT
end)()
`

// joined returns the text of the script as it is sent. begin is the text of prelude.lua.
func joined(begin string) string {
	wrap := func(template, name, text string) string {
		return strings.NewReplacer("NAME", name, "TEXT", text).Replace(template)
	}
	buckets := strings.NewReplacer(
		"-- INSERT hashes\n", wrap(lazilyOnce, "hashes", hashesLua),
	).Replace(bucketLua)
	calls := strings.NewReplacer(
		"-- INSERT expiring_units\n", wrap(lazilyOnce, "expiring_units", expiringUnitsLua),
		"-- INSERT refund_settle\n", wrap(lazilyOnce, "refund_settle", refundSettleLua),
	).Replace(generalLua)
	rest := fieldsLua + limitsLua + wrap(nested, "", buckets+calls+restLua)
	return stripped(begin + wrap(lazily, "decide_rest", rest) +
		wrap(lazily, "decide_several", fieldsLua+fastMultiLua) + wrap(lazily, "decide_window", fastWindowLua) + fastSingleLua + mainLua)
}

// stripped removes comments and indentation: every new connection sends the text.
func stripped(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimLeft(line, " \n"); line != "" && !strings.HasPrefix(line, "--") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// script is a Lua text with its SHA-1, which EVALSHA needs.
type script struct{ text, sha string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text: text, sha: hex.EncodeToString(sum[:])}
}

// run calls the script. It loads the script and repeats the call if that failed with
// NOSCRIPT, because the call did nothing then.
func (s script) run(ctx context.Context, c *redis.Client, keys []string, args ...any) *redis.Cmd {
	reply := c.EvalSha(ctx, s.sha, keys, args...)
	if !redis.HasErrorPrefix(reply.Err(), "NOSCRIPT") {
		return reply
	}
	if err := c.ScriptLoad(ctx, s.text).Err(); err != nil {
		reply.SetErr(fmt.Errorf("load script: %w", err))
		return reply
	}
	return c.EvalSha(ctx, s.sha, keys, args...)
}

// newDecideScript joins the parts of the decision script. format is the format of new
// buckets.
func newDecideScript(format int) script {
	begin := strings.Replace(preludeLua, formatLine, strings.Replace(formatLine, "3", strconv.Itoa(format), 1), 1)
	return newScript(joined(begin))
}
