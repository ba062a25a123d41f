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

// lazily wraps a text that returns a function: it runs when that is first called.
const lazily = `
local made
local function NAME(verb, limits, n_calls, several)
  made = made or (function()
TEXT
  end)()
  return made(verb, limits, n_calls, several)
end
`

// lazilyOnce wraps a text that returns something: it runs when that is first asked for.
const lazilyOnce = `
local made_NAME
local function NAME()
  made_NAME = made_NAME or (function()
TEXT
  end)()
  return made_NAME
end
`

// clockLine is the one line in which the script reads the clock. Tests run a
// text in which only this line differs.
const clockLine = "local time = redis.call('TIME') -- the only clock\n"

// formatLine is the one line that says in which format new buckets are written.
const formatLine = "local WRITE_FORMAT = 1 -- the format of new buckets\n"

// joined returns the text of the script, with prelude.lua as given, as it is sent.
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

// stripped leaves out what only people need: every new connection sends the text.
func stripped(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimLeft(line, " \n"); line != "" && !strings.HasPrefix(line, "--") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// script is a Lua text and the SHA-1 by which Redis knows it.
type script struct{ text, sha string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text: text, sha: hex.EncodeToString(sum[:])}
}

// newDecideScript joins the texts. Format is the one in which new buckets are
// written.
func newDecideScript(format int) script {
	begin := strings.Replace(preludeLua, formatLine, strings.Replace(formatLine, "1", strconv.Itoa(format), 1), 1)
	return newScript(joined(begin))
}
