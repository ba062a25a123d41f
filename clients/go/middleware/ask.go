package middleware

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Decision is the answer of Limitgate to one request.
type Decision struct {
	Allowed bool
	// Limit is the capacity of the limit that decided and Remaining what is left in it; both are
	// -1 without one.
	Limit, Remaining int64
	// RetryAfterMS is 0 for an allowed request, and -1 for one that can never be allowed.
	RetryAfterMS, ResetAfterMS int64
	LimitID, Source            string
	// Header has the fields for the client.
	Header http.Header
	// id is that of a reservation.
	id string
}

// ErrCall is the error for a mistake in a call, such as a tenant that is too long. It is not that
// Limitgate cannot be reached.
var ErrCall = errors.New("limitgate refuses the call")

// request is what a decision is asked for.
type request struct {
	tenant, op, ip string
	cost           int64
	dims           map[string]string
	reserve        bool // cost is an estimate, settled by commit
}

// asker asks Limitgate.
type asker interface {
	decide(ctx context.Context, r *request) (*Decision, error)
	commit(ctx context.Context, id string, actual int64) error
}

// overRedis asks by RL.* commands.
type overRedis struct{ client Client }

func (o overRedis) decide(ctx context.Context, r *request) (*Decision, error) {
	command := "RL.CHECK"
	if r.reserve {
		command = "RL.RESERVE"
	}
	words := []any{command, r.tenant, orDash(r.op), orDash(r.ip), r.cost}
	for _, name := range slices.Sorted(maps.Keys(r.dims)) {
		words = append(words, "DIM", name, r.dims[name])
	}
	reply, err := o.client.Do(ctx, append(words, "HEADERS")...).Slice()
	if err != nil {
		return nil, callError(err)
	}
	return decisionOf(reply)
}

func (o overRedis) commit(ctx context.Context, id string, actual int64) error {
	return callError(o.client.Do(ctx, "RL.COMMIT", id, actual).Err())
}

// ofRedis matches the reply of a Redis to commands that it does not have.
var ofRedis = regexp.MustCompile("(?i)^(ERR )?unknown command ['`]?RL\\.")

// callError marks an error reply. A proxy that has as many clients as it takes cannot be reached.
func callError(err error) error {
	if redis.HasErrorPrefix(err, "max number of clients") || redis.HasErrorPrefix(err, "ERR max number of clients") {
		return err
	}
	if reply := redis.Error(nil); errors.As(err, &reply) {
		if ofRedis.MatchString(reply.Error()) {
			return fmt.Errorf("%w: the server is a Redis, and no limitgate: give a client that is connected to the address of limitgate serve --listen: %w", ErrCall, err)
		}
		return fmt.Errorf("%w: %w", ErrCall, err)
	}
	return err
}

func orDash(word string) string {
	if word == "" {
		return "-"
	}
	return word
}

// decisionOf reads a reply: seven fields, those for the client and, of a reservation, its id.
func decisionOf(reply []any) (*Decision, error) {
	if len(reply) < 8 {
		return nil, fmt.Errorf("read decision: %d elements", len(reply))
	}
	var numbers [5]int64
	for i := range numbers {
		n, ok := reply[i].(int64)
		if !ok {
			return nil, fmt.Errorf("read decision: element %d is a %T", i, reply[i])
		}
		numbers[i] = n
	}
	d := &Decision{
		Allowed: numbers[0] == 1, Limit: numbers[1], Remaining: numbers[2], RetryAfterMS: numbers[3], ResetAfterMS: numbers[4],
		LimitID: fmt.Sprint(reply[5]), Source: fmt.Sprint(reply[6]), Header: http.Header{},
	}
	fields, _ := reply[7].([]any)
	for i := 0; i+1 < len(fields); i += 2 {
		d.Header.Set(fmt.Sprint(fields[i]), fmt.Sprint(fields[i+1]))
	}
	if len(reply) > 8 {
		d.id = fmt.Sprint(reply[8])
	}
	return d, nil
}

// overHTTP asks by the API of limitgate serve --http.
type overHTTP struct {
	url           string
	client        *http.Client
	authorization string
}

func (o overHTTP) decide(ctx context.Context, r *request) (*Decision, error) {
	body := map[string]any{"tenant": r.tenant}
	for name, value := range map[string]string{"op": r.op, "ip": r.ip} {
		if value != "" {
			body[name] = value
		}
	}
	if len(r.dims) > 0 {
		body["dims"] = r.dims
	}
	operation := "check"
	if r.reserve {
		operation, body["estimate"] = "reserve", r.cost
	} else {
		body["cost"] = r.cost
	}
	var answer struct {
		Allowed      bool   `json:"allowed"`
		Limit        int64  `json:"limit"`
		Remaining    int64  `json:"remaining"`
		RetryAfterMS int64  `json:"retry_after_ms"`
		ResetAfterMS int64  `json:"reset_after_ms"`
		LimitID      string `json:"limit_id"`
		Source       string `json:"source"`
		ID           string `json:"id"`
	}
	header, err := o.post(ctx, operation, body, &answer)
	if err != nil {
		return nil, err
	}
	d := &Decision{
		Allowed: answer.Allowed, Limit: answer.Limit, Remaining: answer.Remaining, RetryAfterMS: answer.RetryAfterMS,
		ResetAfterMS: answer.ResetAfterMS, LimitID: answer.LimitID, Source: answer.Source, Header: http.Header{}, id: answer.ID,
	}
	for name, values := range header {
		if strings.Contains(name, "Ratelimit") || name == "Retry-After" {
			d.Header[name] = values
		}
	}
	return d, nil
}

func (o overHTTP) commit(ctx context.Context, id string, actual int64) error {
	_, err := o.post(ctx, "commit", map[string]any{"id": id, "actual": actual}, nil)
	return err
}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 64 << 10

// mistakes are the statuses of a mistake in a call. Any other than 200 says that Limitgate could not
// answer.
var mistakes = []int{400, 401, 403, 404, 405, 413}

// post sends a request, and decodes the answer unless to is nil.
func (o overHTTP) post(ctx context.Context, operation string, body, to any) (http.Header, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url+"/v1/"+operation, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	if o.authorization != "" {
		r.Header.Set("Authorization", o.authorization)
	}
	answer, err := o.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask limitgate: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read answer: %w", err)
	case slices.Contains(mistakes, answer.StatusCode):
		return nil, fmt.Errorf("%w: %s: %s", ErrCall, answer.Status, bytes.TrimSpace(content))
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("ask limitgate: %s", answer.Status)
	case to != nil:
		if err := json.Unmarshal(content, to); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
	}
	return answer.Header, nil
}
