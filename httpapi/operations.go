package httpapi

import (
	"slices"
	"strconv"
)

// operation is a row of the table of the API: one RL.* command with names for its arguments. The
// routes, the checks of bodies and the OpenAPI document follow from it.
type operation struct {
	name    string // the path below /v1/, and the command behind RL. in lower case
	summary string
	// fields are the names that a body may have. Those of required must be there.
	fields, required []string
	// get allows GET with the fields as query parameters: the operation changes nothing.
	get    bool
	result result
	// words appends the arguments of the command.
	words func(args [][]byte, r *request) [][]byte
	// example is a body, for the document.
	example string
}

// result is the kind of an operation's result.
type result uint8

const (
	resultDecision result = iota // the seven fields, and an id of what is held
	resultSettled                // done, already done or unknown
	resultMap                    // a map of the command
)

// subject are the fields of a request for a decision.
var subject = []string{"tenant", "op", "ip", "dims"}

const exampleRequest = `"tenant":"acme","op":"POST /v1/payments","ip":"203.0.113.7"`

var operations = []operation{
	{
		name: "check", summary: "Decide whether the cost may be taken now, and take it.",
		fields: append([]string{"cost", "id", "bypass"}, subject...), words: checkWords,
		example: `{` + exampleRequest + `,"cost":1,"dims":{"user":"u1"}}`,
	},
	{
		name: "peek", summary: "The decision that check would give, taking nothing; with limit, that of one limit alone.",
		fields: append([]string{"cost", "limit"}, subject...), get: true, words: checkWords,
		example: `{` + exampleRequest + `,"limit":"monthly"}`,
	},
	{
		name: "reserve", summary: "Take an estimate now, to be settled by commit or cancel under the id of the answer.",
		fields: append([]string{"estimate", "ttl_ms", "id"}, subject...), required: []string{"estimate"}, words: checkWords,
		example: `{` + exampleRequest + `,"estimate":5,"id":"r1"}`,
	},
	{
		name: "commit", summary: "Settle a reservation to what was used. An id of your own needs the tenant.",
		fields: []string{"id", "tenant", "actual"}, required: []string{"id", "actual"}, result: resultSettled, words: settleWords,
		example: `{"id":"r1","tenant":"acme","actual":3}`,
	},
	{
		name: "cancel", summary: "Give back all that a reservation took.",
		fields: []string{"id", "tenant"}, required: []string{"id"}, result: resultSettled, words: settleWords,
		example: `{"id":"r1","tenant":"acme"}`,
	},
	{
		name: "acquire", summary: "Take a slot of each concurrency limit, and decide the other limits, at once.",
		fields: append([]string{"ttl_ms", "id"}, subject...), words: checkWords,
		example: `{` + exampleRequest + `,"id":"s1","ttl_ms":30000}`,
	},
	{
		name: "renew", summary: "Hold a slot from now on for its time, or for ttl_ms.",
		fields: []string{"id", "tenant", "ttl_ms"}, required: []string{"id"}, result: resultSettled, words: settleWords,
		example: `{"id":"s1","tenant":"acme","ttl_ms":30000}`,
	},
	{
		name: "release", summary: "Give a slot back.",
		fields: []string{"id", "tenant"}, required: []string{"id"}, result: resultSettled, words: settleWords,
		example: `{"id":"s1","tenant":"acme"}`,
	},
	{
		name: "refund", summary: "Give units back to a tenant's own buckets, never above capacity. It needs @admin where there are users.",
		fields: append([]string{"cost"}, subject...), required: []string{"cost"}, result: resultSettled, words: checkWords,
		example: `{` + exampleRequest + `,"cost":1}`,
	},
	{
		name: "explain", summary: "Every limit considered, its bucket, and why it applies or not.",
		fields: append([]string{"cost"}, subject...), get: true, result: resultMap, words: checkWords,
		example: `{` + exampleRequest + `}`,
	},
	{
		name: "limits", summary: "The limits in force, all of them or those of a tenant.",
		fields: []string{"tenant"}, get: true, result: resultMap,
		words: func(args [][]byte, r *request) [][]byte {
			if r.Tenant == nil {
				return args
			}
			return append(args, []byte(*r.Tenant))
		},
		example: `{"tenant":"acme"}`,
	},
}

// decides reports whether an operation takes lists, which are decided as a pipeline.
func (o *operation) decides() bool {
	return o.name == "check" || o.name == "reserve" || o.name == "acquire"
}

// args returns the words of the command for a request.
func (o *operation) args(r *request) [][]byte {
	return o.words(append(make([][]byte, 0, 16), []byte("rl."+o.name)), r)
}

// checkWords appends tenant, op and ip, the cost and the options.
func checkWords(args [][]byte, r *request) [][]byte {
	args = append(args, orDash(r.Tenant), orDash(r.Op), orDash(r.IP))
	switch {
	case r.Estimate != nil:
		args = append(args, r.Estimate)
	case r.Cost != nil:
		args = append(args, r.Cost)
	}
	names := make([]string, 0, len(r.Dims))
	for name := range r.Dims {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		args = append(args, []byte("DIM"), []byte(name), []byte(r.Dims[name]))
	}
	if r.ID != nil {
		args = append(args, []byte("ID"), []byte(*r.ID))
	}
	if r.TTL != nil {
		args = append(args, []byte("TTL"), r.TTL)
	}
	if r.Limit != nil {
		args = append(args, []byte("LIMIT"), []byte(*r.Limit))
	}
	if r.Bypass != nil {
		args = append(args, []byte("BYPASS"), []byte(*r.Bypass))
	}
	return args
}

// settleWords appends the id that an answer had, or an id of the client's own and its tenant, and
// the rest.
func settleWords(args [][]byte, r *request) [][]byte {
	id := []byte(*r.ID)
	if r.Tenant != nil {
		args = append(args, []byte("ID"), id, []byte("TENANT"), []byte(*r.Tenant))
	} else {
		args = append(args, id)
	}
	if r.Actual != nil {
		args = append(args, r.Actual)
	}
	if r.TTL != nil {
		args = append(args, []byte("TTL"), r.TTL)
	}
	return args
}

// orDash returns a text, or the word for none.
func orDash(text *string) []byte {
	if text == nil {
		return []byte("-")
	}
	return []byte(*text)
}

// settledWords are the results of commands that settle, by their integers.
var settledWords = map[string]string{":0": "unknown", ":1": "done", ":2": "already_done"}

// maxList is the maximum number of requests in a list: their words and answers take some KiB each.
const maxList = 256

var tooLong = "a list has " + strconv.Itoa(maxList) + " requests at most"
