package integration

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
)

// asked is a command of a pipeline, with a check of its reply.
type asked struct {
	words []any
	right func(reply any, err error) bool
}

// isDecision reports whether a reply is an array of so many elements.
func isDecision(elements int) func(any, error) bool {
	return func(reply any, err error) bool {
		fields, ok := reply.([]any)
		return err == nil && ok && len(fields) == elements
	}
}

// isError reports whether a reply is an error with a text.
func isError(text string) func(any, error) bool {
	return func(_ any, err error) bool {
		var refused redis.Error
		return errors.As(err, &refused) && refused.Error() == text
	}
}

// mixed returns the i-th command of a pipeline of mixed commands.
func mixed(i int) asked {
	tenant := fmt.Sprint("t", i%7)
	switch i % 10 {
	case 0:
		text := fmt.Sprint("echo ", i)
		return asked{[]any{"ECHO", text}, func(reply any, _ error) bool { return reply == text }}
	case 1:
		return asked{[]any{"RL.CHECK", tenant, "-", "-", "x"}, isError("ERR cost must be an integer between 1 and 2147483647")}
	case 2:
		return asked{[]any{"CL.THROTTLE", fmt.Sprint("k", i), 4, 1, 60, i % 20 / 10}, isDecision(5)}
	case 3:
		return asked{[]any{"RL.CHECK", tenant, "-", "-", 1, "HEADERS"}, isDecision(8)}
	case 4:
		return asked{[]any{"GCRA", "k", -1, 1, 1}, isError("ERR max_burst is out of range")}
	case 5:
		return asked{[]any{"RL.PEEK", tenant, "-", "-"}, isDecision(7)}
	case 6:
		return asked{[]any{"NOSUCH"}, isError("ERR unknown command 'NOSUCH', with args beginning with: ")}
	case 7:
		return asked{[]any{"RL.CHECK", tenant, "-", "-", 1, "ID", i}, isDecision(7)}
	default:
		return asked{[]any{"RL.CHECK", tenant, "-", "-"}, isDecision(7)}
	}
}

// TestMixedPipeline: each command of a pipeline of 10,000, with errors among them, gets a
// reply, in order, and each limit admits as many units as it has.
func TestMixedPipeline(t *testing.T) {
	const commands = 10_000
	limits := writeLimits(t, limitOf("3000/366d"))
	for name, flags := range map[string][]string{"memory": nil, "redis": {"--redis", redistest.Start(t).Addr, "--deny-cache-size", "0"}} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, limits, append(flags, exact...)...).client()
			pipe := c.Pipeline()
			var sent []asked
			var replies []*redis.Cmd
			for i := range commands {
				a := mixed(i)
				sent, replies = append(sent, a), append(replies, pipe.Do(t.Context(), a.words...))
			}
			_, _ = pipe.Exec(t.Context())
			admitted, wrong := 0, 0
			for i, r := range replies {
				reply, err := r.Result()
				if !sent[i].right(reply, err) {
					if wrong++; wrong < 10 {
						t.Errorf("%d: %v is answered %v, %v", i, sent[i].words, reply, err)
					}
				} else if fields, ok := reply.([]any); ok && sent[i].words[0] == "RL.CHECK" && fields[0] == int64(1) {
					admitted++
				}
			}
			if asked := commands * 4 / 10; admitted != asked {
				t.Errorf("%d checks admitted of %d, for which there is room", admitted, asked)
			}
		})
	}
}
