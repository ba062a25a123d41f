package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/httpapi"
)

// A call is one request of a history, in the words of both fronts.
type call struct {
	operation string
	words     []string       // behind the name of the command
	fields    map[string]any // of the body
	list      []call         // for operation "list"
	wait      time.Duration  // before it
}

// TestFronts: random histories get the same answers over HTTP and over RESP, also where the trace of
// a caller is a dimension over HTTP. The fronts are on two stores with one clock, and in each history
// both change the store in turns.
func TestFronts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newClock()
		one, two := newHandler(t, c, nil), newHandler(t, c, nil)
		addr := serve(t, httpapi.Options{Handler: one, Now: c.now, TraceHeader: rapid.SampledFrom([]string{"", "traceparent"}).Draw(rt, "trace header")})
		ofOne, ofTwo := session(one), session(two)
		defer ofOne.Close()
		defer ofTwo.Close()
		client := &http.Client{Timeout: 10 * time.Second}
		defer client.CloseIdleConnections()
		for range rapid.IntRange(1, 25).Draw(rt, "calls") {
			k := drawCall(rt)
			c.advance(k.wait)
			want := overRESP(ofTwo, &k)
			var got string
			if rapid.Bool().Draw(rt, "over HTTP") {
				got = overHTTP(t, client, addr, &k)
			} else {
				got = overRESP(ofOne, &k)
			}
			if got != want {
				rt.Fatalf("%s %v %v: %s, want %s", k.operation, k.words, k.fields, got, want)
			}
		}
	})
}

func session(h *commands.Handler) *commands.Session { return h.NewSession(commands.Peer{ID: 1}) }

// drawCall draws a request.
func drawCall(rt *rapid.T) call {
	wait := rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, time.Second, 30 * time.Second}).Draw(rt, "wait")
	k := call{}
	switch operation := rapid.SampledFrom([]string{"check", "check", "peek", "list", "reserve", "commit", "cancel", "acquire", "renew", "release", "refund"}).Draw(rt, "operation"); operation {
	case "list":
		k.operation = operation
		for range rapid.IntRange(1, 6).Draw(rt, "length") {
			k.list = append(k.list, drawDecision(rt, "check"))
		}
	case "commit", "cancel", "renew", "release":
		k = drawSettlement(rt, operation)
	default:
		k = drawDecision(rt, operation)
	}
	k.wait = wait
	return k
}

// drawDecision draws a request for a decision; some are malformed.
func drawDecision(rt *rapid.T, operation string) call {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, name) }
	tenant, op, ip := pick("tenant", "acme", "b", "banned", "ü", ""), pick("op", "-", "POST /pay/1", "GET /x"), pick("ip", "-", "203.0.113.7", "192.0.2.9", "::ffff:203.0.113.7", "x")
	cost := pick("cost", "1", "3", "19", "25", "0", "2147483648")
	k := call{operation: operation, words: []string{tenant, op, ip}, fields: map[string]any{"tenant": tenant, "op": op, "ip": ip}}
	switch operation {
	case "reserve":
		k.fields["estimate"] = json.Number(cost)
	case "acquire":
		cost = ""
	default:
		k.fields["cost"] = json.Number(cost)
	}
	if cost != "" {
		k.words = append(k.words, cost)
	}
	if rapid.Bool().Draw(rt, "user") {
		user := pick("of user", "u1", "u2", "")
		k.words, k.fields["dims"] = append(k.words, "DIM", "user", user), map[string]string{"user": user}
	}
	if operation == "reserve" || operation == "acquire" || operation == "check" && rapid.Bool().Draw(rt, "named") {
		id := pick("id", "a", "b", "c")
		k.words, k.fields["id"] = append(k.words, "ID", id), id
	}
	return k
}

// drawSettlement draws a settlement of what other calls hold, perhaps.
func drawSettlement(rt *rapid.T, operation string) call {
	id, tenant := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "id"), rapid.SampledFrom([]string{"acme", "b"}).Draw(rt, "tenant")
	k := call{operation: operation, words: []string{"ID", id, "TENANT", tenant}, fields: map[string]any{"id": id, "tenant": tenant}}
	if operation == "commit" {
		actual := rapid.SampledFrom([]string{"0", "1", "4", "30"}).Draw(rt, "actual")
		k.words, k.fields["actual"] = append(k.words, actual), json.Number(actual)
	}
	return k
}

// overRESP returns the answer over RESP: the words of the reply. The empty id of a denied
// reservation is left out, as in JSON.
func overRESP(s *commands.Session, k *call) string {
	all := []call{*k}
	if k.operation == "list" {
		all = k.list
	}
	var cmds [][][]byte
	for _, one := range all {
		args := [][]byte{[]byte("RL." + strings.ToUpper(one.operation))}
		for _, w := range one.words {
			args = append(args, []byte(w))
		}
		cmds = append(cmds, args)
	}
	var out []byte
	for len(cmds) > 0 {
		reply, served, _ := s.Serve(context.Background(), cmds, out)
		out, cmds = reply, cmds[served:]
	}
	var words []string
	for line := range strings.SplitSeq(strings.TrimSpace(string(out)), "\r\n") {
		switch {
		case line[0] == '*' || line[0] == '$' && line != "$0":
		case line == "$0":
			words = append(words, "")
		case line[0] == '-':
			words = append(words, "error")
		default:
			words = append(words, strings.TrimPrefix(line, ":"))
		}
	}
	text := strings.Join(words, " ")
	return strings.Join(strings.Fields(text), " ")
}

// overHTTP returns the answer over HTTP in the same words.
func overHTTP(t *testing.T, client *http.Client, addr string, k *call) string {
	t.Helper()
	path, body := k.operation, any(k.fields)
	if k.operation == "list" {
		var list []map[string]any
		for _, one := range k.list {
			list = append(list, one.fields)
		}
		path, body = "check", list
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/v1/"+path, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	a, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	d := json.NewDecoder(a.Body)
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		t.Fatal(err)
	}
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	var words []string
	for _, one := range list {
		words = append(words, wordsOf(one.(map[string]any)))
	}
	return strings.Join(words, " ")
}

// wordsOf returns the values of a decision in the order of RESP, or those of another answer.
func wordsOf(v map[string]any) string {
	if v["error"] != nil || v["detail"] != nil {
		return "error"
	}
	if result, ok := v["result"].(string); ok {
		return map[string]string{"unknown": "0", "done": "1", "already_done": "2"}[result]
	}
	allowed := "0"
	if v["allowed"] == true {
		allowed = "1"
	}
	words := []string{allowed}
	for _, name := range []string{"limit", "remaining", "retry_after_ms", "reset_after_ms", "limit_id", "source", "id"} {
		if text := fmt.Sprint(v[name]); v[name] != nil && text != "" {
			words = append(words, text)
		}
	}
	return strings.Join(words, " ")
}

// TestOpenAPI: every example of the document gets 200, and the document in docs is the present one.
func TestOpenAPI(t *testing.T) {
	document := httpapi.OpenAPI()
	const file = "../../docs/openapi.json"
	if *update {
		write(t, file, document)
	}
	if want := read(t, file); string(want) != string(document) {
		t.Errorf("%s is another document: run go test ./internal/httpapi -run OpenAPI -update", file)
	}
	c := newClock()
	addr := serve(t, httpapi.Options{Handler: newHandler(t, c, nil), Now: c.now})
	var of struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Example json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(document, &of); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, name := range []string{"check", "peek", "reserve", "commit", "cancel", "acquire", "renew", "release", "refund", "explain", "limits"} {
		example := of.Paths["/v1/"+name]["post"].RequestBody.Content["application/json"].Example
		if len(example) == 0 {
			t.Errorf("%s has no example", name)
			continue
		}
		body := strings.ReplaceAll(string(example), `"monthly"`, `"quota"`) // the limits of the tests
		a, err := http.Post("http://"+addr+"/v1/"+name, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		if a.StatusCode != http.StatusOK {
			t.Errorf("%s %s: %s", name, body, a.Status)
		}
		tried++
	}
	if n := len(of.Paths) - 1; n != tried {
		t.Errorf("%d operations, tried %s", n, strconv.Itoa(tried))
	}
	a, err := http.Get("http://" + addr + "/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	served := make([]byte, len(document)+1)
	n := 0
	for {
		m, err := a.Body.Read(served[n:])
		if n += m; err != nil {
			break
		}
	}
	if string(served[:n]) != string(document) {
		t.Error("another document is served")
	}
}
