package httpapi

import "strconv"

// operation is a row of the table of the API: one RL.* command with names for its arguments. The
// routes, the checks of bodies and the OpenAPI document follow from it.
type operation struct {
	name    string // the path below /v1/, and the command behind RL. in lower case
	summary string
	// fields are those that a body may have. Those of required must be there.
	fields, required []field
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
var subject = []field{fieldTenant, fieldOp, fieldIP, fieldDims}

const exampleRequest = `"tenant":"acme","op":"POST /v1/payments","ip":"203.0.113.7"`

var operations = []operation{
	{
		name: "check", summary: "Decide whether the cost may be taken now, and take it.",
		fields: append([]field{fieldCost, fieldID, fieldBypass}, subject...), words: checkWords,
		example: `{` + exampleRequest + `,"cost":1,"dims":{"user":"u1"}}`,
	},
	{
		name: "peek", summary: "The decision that check would give, taking nothing; with limit, that of one limit alone.",
		fields: append([]field{fieldCost, fieldLimit}, subject...), get: true, words: checkWords,
		example: `{` + exampleRequest + `,"limit":"monthly"}`,
	},
	{
		name: "reserve", summary: "Take an estimate now, to be settled by commit or cancel under the id of the answer.",
		fields: append([]field{fieldEstimate, fieldTTL, fieldID}, subject...), required: []field{fieldEstimate}, words: checkWords,
		example: `{` + exampleRequest + `,"estimate":5,"id":"r1"}`,
	},
	{
		name: "commit", summary: "Settle a reservation to what was used. An id of your own needs the tenant.",
		fields: []field{fieldID, fieldTenant, fieldActual}, required: []field{fieldID, fieldActual}, result: resultSettled, words: settleWords,
		example: `{"id":"r1","tenant":"acme","actual":3}`,
	},
	{
		name: "cancel", summary: "Give back all that a reservation took.",
		fields: []field{fieldID, fieldTenant}, required: []field{fieldID}, result: resultSettled, words: settleWords,
		example: `{"id":"r1","tenant":"acme"}`,
	},
	{
		name: "acquire", summary: "Take a slot of each concurrency limit, and decide the other limits, at once.",
		fields: append([]field{fieldTTL, fieldID}, subject...), words: checkWords,
		example: `{` + exampleRequest + `,"id":"s1","ttl_ms":30000}`,
	},
	{
		name: "renew", summary: "Hold a slot from now on for its time, or for ttl_ms.",
		fields: []field{fieldID, fieldTenant, fieldTTL}, required: []field{fieldID}, result: resultSettled, words: settleWords,
		example: `{"id":"s1","tenant":"acme","ttl_ms":30000}`,
	},
	{
		name: "release", summary: "Give a slot back.",
		fields: []field{fieldID, fieldTenant}, required: []field{fieldID}, result: resultSettled, words: settleWords,
		example: `{"id":"s1","tenant":"acme"}`,
	},
	{
		name: "refund", summary: "Give units back to a tenant's own buckets, never above capacity. It needs @admin where there are users.",
		fields: append([]field{fieldCost}, subject...), required: []field{fieldCost}, result: resultSettled, words: checkWords,
		example: `{` + exampleRequest + `,"cost":1}`,
	},
	{
		name: "explain", summary: "Every limit considered, its bucket, and why it applies or not.",
		fields: append([]field{fieldCost}, subject...), get: true, result: resultMap, words: checkWords,
		example: `{` + exampleRequest + `}`,
	},
	{
		name: "limits", summary: "The limits in force, all of them or those of a tenant.",
		fields: []field{fieldTenant}, get: true, result: resultMap,
		words: func(args [][]byte, r *request) [][]byte {
			if r.values[fieldTenant] == nil {
				return args
			}
			return append(args, r.values[fieldTenant])
		},
		example: `{"tenant":"acme"}`,
	},
}

// decides reports whether an operation takes lists, which are decided as a pipeline.
func (o *operation) decides() bool {
	return o.name == "check" || o.name == "reserve" || o.name == "acquire"
}

// Words of commands.
var (
	dimWord, idWord, ttlWord, limitWord = []byte("DIM"), []byte("ID"), []byte("TTL"), []byte("LIMIT")
	bypassWord, tenantWord, dashWord    = []byte("BYPASS"), []byte("TENANT"), []byte("-")
)

// args returns the words of the command for a request.
func (o *operation) args(r *request) [][]byte {
	return o.words(append(make([][]byte, 0, 16), []byte("rl."+o.name)), r)
}

// checkWords appends tenant, op and ip, the cost and the options.
func checkWords(args [][]byte, r *request) [][]byte {
	for _, f := range [...]field{fieldTenant, fieldOp, fieldIP} {
		word := r.values[f]
		if word == nil {
			word = dashWord
		}
		args = append(args, word)
	}
	switch {
	case r.values[fieldEstimate] != nil:
		args = append(args, r.values[fieldEstimate])
	case r.values[fieldCost] != nil:
		args = append(args, r.values[fieldCost])
	}
	for _, d := range r.dims {
		args = append(args, dimWord, d[0], d[1])
	}
	for _, option := range [...]struct {
		word []byte
		of   field
	}{{idWord, fieldID}, {ttlWord, fieldTTL}, {limitWord, fieldLimit}, {bypassWord, fieldBypass}} {
		if value := r.values[option.of]; value != nil {
			args = append(args, option.word, value)
		}
	}
	return args
}

// settleWords appends the id that an answer had, or an id of the client's own and its tenant, and
// the rest.
func settleWords(args [][]byte, r *request) [][]byte {
	id := r.values[fieldID]
	if tenant := r.values[fieldTenant]; tenant != nil {
		args = append(args, idWord, id, tenantWord, tenant)
	} else {
		args = append(args, id)
	}
	if actual := r.values[fieldActual]; actual != nil {
		args = append(args, actual)
	}
	if ttl := r.values[fieldTTL]; ttl != nil {
		args = append(args, ttlWord, ttl)
	}
	return args
}

// settledWords are the results of commands that settle, by their integers.
var settledWords = map[string]string{":0": "unknown", ":1": "done", ":2": "already_done"}

// maxList is the maximum number of requests in a list: their words and answers take some KiB each.
const maxList = 256

var tooLong = "a list has " + strconv.Itoa(maxList) + " requests at most"
