package httpapi

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/httpfields"
	"github.com/limitgate/limitgate/limit"
)

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// problem is the body of an answer other than a success, after RFC 9457.
type problem struct {
	Type   string `json:"type,omitempty"` // about:blank if it is missing
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// ViolatedPolicies are the ids of the limits that deny, a member of
	// draft-ietf-httpapi-ratelimit-headers-11.
	ViolatedPolicies []string `json:"violated-policies,omitempty"`
}

// problem answers with a status and the reason.
func (s *Server) problem(ctx *fasthttp.RequestCtx, code int, detail string) {
	s.writeProblem(ctx, &problem{Title: fasthttp.StatusMessage(code), Status: code, Detail: detail})
}

func (s *Server) writeProblem(ctx *fasthttp.RequestCtx, p *problem) {
	body, _ := json.Marshal(p) // of texts and numbers, which never fails

	if p.Status == fasthttp.StatusUnauthorized && !isCheck(ctx) { // a browser behind a gateway would ask its user
		ctx.Response.Header.Set("WWW-Authenticate", `Basic realm="limitgate", Bearer`)
	}
	s.write(ctx, p.Status, problemType, append(body, '\n'))
}

func (s *Server) write(ctx *fasthttp.RequestCtx, code int, contentType string, body []byte) {
	s.count(code)
	ctx.SetStatusCode(code)
	ctx.SetContentType(contentType)
	ctx.Response.SetBodyRaw(body) // which is not copied: each has a body of its own
}

// errReply answers with the text of an error reply of RESP: its first word decides the status.
func (s *Server) errReply(ctx *fasthttp.RequestCtx, text string) {
	word, rest, _ := strings.Cut(text, " ")
	code := fasthttp.StatusBadRequest
	switch word {
	case "NOAUTH", "WRONGPASS":
		code = fasthttp.StatusUnauthorized
	case "NOPERM":
		code = fasthttp.StatusForbidden
	}
	switch { // attempts to authenticate, and a refund while the store is away
	case strings.HasPrefix(rest, "too many failed"):
		code = fasthttp.StatusTooManyRequests
	case strings.HasPrefix(rest, "too many clients"), strings.HasPrefix(rest, "nothing was refunded"):
		code = fasthttp.StatusServiceUnavailable
	}
	s.problem(ctx, code, withAPINames(rest)+lackingRule(rest))
}

// lackingRule names the rule that a user lacks who may not ask for a tenant, or returns "".
func lackingRule(text string) string {
	_, tenant, found := strings.Cut(text, " tenant '")
	if !found || !strings.HasPrefix(text, "this user may not ") || strings.Contains(text, "': its token is for ") {
		return ""
	}
	return ": its rules have no ~" + strings.TrimSuffix(tenant, "'")
}

// ownNames replaces what errors of RL.* commands name by what the API has for it.
var ownNames = strings.NewReplacer(
	"invalid username-password pair or user is disabled.", "the file of users has no user of this name and password, or it is off",
	"the reply of RL.RESERVE", "the answer of /v1/reserve",
	"the reply of RL.ACQUIRE", "the answer of /v1/acquire",
	"an id of your own as ID id TENANT tenant", "an id of your own beside its tenant",
	"; the order is tenant op ip cost", "", "; the order is tenant op ip", "",
	", - stands for none", ": leave the field out for none",
	"RL.LIMITS lists them", "/v1/limits lists them",
	"RL.PEEK takes nothing", "/v1/peek takes nothing",
	"RL.REFUND returns units", "/v1/refund returns units",
	"RL.EXPLAIN says why", "/v1/explain says why",
	"which RL.COMMIT or RL.CANCEL settles", "which /v1/commit or /v1/cancel settles",
	"which RL.RELEASE gives back", "which /v1/release gives back",
	"when RL.CONFIG SHARDS has no error", "when /readyz of --admin has no error",
	"tenant, op and ip stand in front, without DIM", "tenant, op and ip are fields of their own",
	"a blank stands between name and value: DIM ", "the value stands beside the name: ",
)

// withAPINames returns the text of an error with the names that arguments have here.
func withAPINames(text string) string {
	if strings.HasPrefix(text, "tenant required") {
		return "tenant required: send its name in the field tenant, or authenticate as a user that has one"
	}
	return ownNames.Replace(text)
}

// appendDecision appends a decision as a JSON object.
func appendDecision(b []byte, a *commands.Answer) []byte {
	b = append(b, `{"allowed":`...)
	b = strconv.AppendBool(b, a.Allowed)
	for _, n := range [...]struct {
		name  string
		value int64
	}{{`,"limit":`, a.Limit}, {`,"remaining":`, a.Remaining}, {`,"retry_after_ms":`, a.RetryAfter}, {`,"reset_after_ms":`, a.ResetAfter}} {
		b = strconv.AppendInt(append(b, n.name...), n.value, 10)
	}
	b = append(b, `,"limit_id":"`...) // neither it nor the source has a character to be escaped
	b = append(b, a.LimitID()...)
	b = append(b, `","source":"`...)
	b = append(b, a.Source.String()...)
	b = append(b, '"')
	if a.Held != "" {
		b = append(b, `,"id":`...)
		b = appendText(b, a.Held)
	}
	return append(b, '}')
}

// appendText appends a JSON string.
func appendText(b []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // of a text, which never fails
	return append(b, quoted...)
}

// fields sets the header fields of a decision.
func (s *Server) fields(ctx *fasthttp.RequestCtx, d *limit.Decision) {
	var room [httpfields.MaxFields]httpfields.Field
	var values [httpfields.MaxBytes]byte
	for _, f := range s.opts.Format.Append(room[:0], values[:0], d, s.opts.Now) {
		// The names are written as their specifications have them.
		ctx.Response.Header.SetCanonical(f.Name, f.Value)
	}
}

// deny answers a request at /check that is denied. A body says which limit denies it, and no
// address.
func (s *Server) deny(ctx *fasthttp.RequestCtx, d *limit.Decision, code int) {
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.Response.Header.Set("Access-Control-Expose-Headers", s.exposed)
	p := &problem{
		Type: "https://iana.org/assignments/http-problem-types#quota-exceeded", Title: "Request cannot be satisfied as assigned quota has been exceeded",
		Status: code, Detail: detailOf(d),
	}
	switch {
	case d.LacksDimension(), d.Binding != nil && d.Binding.Action == limit.ActionDeny:
		p.Type, p.Title = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected", "Request not satisfied due to detection of abnormal request pattern"
	case d.RetryAfter < 0: // however much capacity there is
	case d.Source == limit.SourceBackstop || d.Source == limit.SourcePolicy:
		p.Type, p.Title = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", "Request cannot be satisfied due to temporary server capacity constraints"
	}
	if id := d.LimitID(); id != "" {
		p.ViolatedPolicies = []string{id}
	}
	s.writeProblem(ctx, p)
}

// detailOf says when a denied request may come again.
func detailOf(d *limit.Decision) string {
	switch {
	case d.Binding != nil && d.Binding.Action == limit.ActionDeny:
		return "These requests are refused."
	case d.LacksDimension():
		// Each request has a tenant.
		level := slices.DeleteFunc(d.Binding.Level(), func(name string) bool { return name == "tenant" })
		if len(level) == 1 {
			return "The limit counts by " + level[0] + ", of which the request has no value, or none that is declared."
		}
		return "The limit counts by " + strings.Join(level, " and ") + ": the request lacks one of them."
	case d.RetryAfter < 0:
		return "The request costs more than the limit ever admits."
	default:
		return "Come again in " + strconv.FormatInt(httpfields.Seconds(d.RetryAfter), 10) + " s."
	}
}

// isTimeout reports whether a client took too long.
func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}
