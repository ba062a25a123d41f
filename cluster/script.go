package cluster

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strconv"
	"strings"
)

//go:embed scripts/prelude.lua
var preludeLua string

//go:embed scripts/fast_single.lua
var fastSingleLua string

//go:embed scripts/fast_multi.lua
var fastMultiLua string

//go:embed scripts/bucket.lua
var bucketLua string

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
local made
local function NAME(verb, limits, n_calls, several)
  made = made or (function()
TEXT
  end)()
  return made(verb, limits, n_calls, several)
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
const formatLine = "local WRITE_FORMAT = 1 -- the format of new buckets\n"

// joined returns the text of the script as it is sent. begin is the text of prelude.lua.
func joined(begin string) string {
	wrap := func(template, name, text string) string {
		return strings.NewReplacer("NAME", name, "TEXT", text).Replace(template)
	}
	calls := strings.NewReplacer(
		"-- INSERT expiring_units\n", wrap(lazilyOnce, "expiring_units", expiringUnitsLua),
		"-- INSERT refund_settle\n", wrap(lazilyOnce, "refund_settle", refundSettleLua),
	).Replace(generalLua)
	text := begin
	for _, part := range []struct{ name, text string }{
		{"decide_any", bucketLua + "\n" + calls},
		{"decide_one", fastSingleLua},
		{"decide_several", fastMultiLua},
	} {
		text += wrap(lazily, part.name, part.text)
	}
	return stripped(text + mainLua)
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

// newDecideScript joins the parts of the decision script. format is the format of new
// buckets.
func newDecideScript(format int) script {
	begin := strings.Replace(preludeLua, formatLine, strings.Replace(formatLine, "1", strconv.Itoa(format), 1), 1)
	return newScript(joined(begin))
}
