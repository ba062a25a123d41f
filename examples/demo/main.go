// Command demo sends a realistic mix of checks to a limitgate that runs with examples/limits.yaml,
// so that its page has something to show: tenants of all sizes, one that is noisy at times, a
// client at one address that tries passwords, and users who search more often than a limit on
// trial would admit.
//
//	go run ./examples/demo --addr 127.0.0.1:6380 --for 5m
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// tick is the time between two pipelines.
const tick = 20 * time.Millisecond

// source is a kind of client: check draws one of its checks.
type source struct {
	name   string
	rate   float64 // checks a second
	quiet  time.Duration
	active time.Duration // in turn with quiet; 0 is always
	check  func() []any
}

var routes = []string{"GET /v1/orders", "GET /v1/orders/{id}", "GET /v1/products", "POST /v1/orders", "POST /v1/payments", "GET /v1/invoices"}

// sources are the clients of the demo. Addresses are those of documentation, RFC 5737.
var sources = []source{
	{name: "many small tenants", rate: 150, check: func() []any {
		tenant := fmt.Sprintf("shop-%02d", min(int(rand.ExpFloat64()*6), 40))
		return []any{"RL.CHECK", tenant, routes[rand.IntN(len(routes))], fmt.Sprintf("198.51.100.%d", rand.IntN(250))}
	}},
	{name: "a large tenant", rate: 200, check: func() []any {
		return []any{"RL.CHECK", "globex", routes[rand.IntN(len(routes))], "-"}
	}},
	{name: "a noisy tenant", rate: 260, active: 10 * time.Second, quiet: 10 * time.Second, check: func() []any {
		return []any{"RL.CHECK", "initech", "GET /v1/products", "-"}
	}},
	{name: "an address that tries passwords", rate: 150, check: func() []any {
		return []any{"RL.CHECK", fmt.Sprintf("shop-%02d", rand.IntN(40)), "POST /v1/login", "203.0.113.66"}
	}},
	{name: "users who search", rate: 40, check: func() []any {
		user := "ann"
		if rand.IntN(2) == 0 {
			user = fmt.Sprintf("user-%d", rand.IntN(100))
		}
		return []any{"RL.CHECK", "acme", "GET /v1/search", "-", 1, "DIM", "user", user}
	}},
	{name: "a block of addresses that is banned", rate: 2, check: func() []any {
		return []any{"RL.CHECK", "shop-01", "GET /", fmt.Sprintf("192.0.2.%d", rand.IntN(250))}
	}},
}

// quietRedis keeps the Redis client from writing to stderr in its own format: each error is printed by main.
type quietRedis struct{}

func (quietRedis) Printf(context.Context, string, ...any) {}

func main() {
	redis.SetLogger(quietRedis{})
	addr := flag.String("addr", cmp.Or(os.Getenv("LIMITGATE_LISTEN"), "127.0.0.1:6380"), "`address` of the limitgate, by default that of LIMITGATE_LISTEN")
	lasts := flag.Duration("for", 5*time.Minute, "how long to send")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *lasts)
	defer cancel()
	if err := send(ctx, *addr); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// send sends checks until ctx ends, and prints once a second how many there were. Checks that get
// no answer are counted, so that the demo goes on when the limitgate is restarted.
func send(ctx context.Context, addr string) error {
	client := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, Protocol: 2, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	if err := client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("no limitgate answers at %s (make run starts one; LIMITGATE_LISTEN=HOST:PORT make demo-traffic asks another): %w", addr, err)
	}
	page := "the address of its --admin, http://127.0.0.1:9180/ by default"
	if admin := os.Getenv("LIMITGATE_ADMIN"); admin != "" {
		page = "http://" + admin + "/"
	}
	fmt.Printf("Sending checks to %s. Its page is at %s.\n", addr, page)
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	began, due := time.Now(), make([]float64, len(sources))
	sent, denied, lost, printed := 0, 0, 0, began
	for {
		select {
		case <-ctx.Done():
			fmt.Printf("\n%d checks, %d denied, %d without an answer.\n", sent, denied, lost)
			return nil
		case <-ticks.C:
		}
		replies, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i := range sources {
				queue(ctx, pipe, &sources[i], &due[i], time.Since(began))
			}
			return nil
		})
		var refused redis.Error
		if err != nil && !errors.As(err, &refused) {
			lost += len(replies)
			continue
		}
		if err := notLimitgate(replies); err != nil {
			return fmt.Errorf("%s is no limitgate: %w", addr, err)
		}
		sent += len(replies)
		denied += countDenied(replies)
		if time.Since(printed) >= time.Second {
			printed = time.Now()
			fmt.Printf("\r%4.0f s  %8d checks  %8d denied ", time.Since(began).Seconds(), sent, denied)
		}
	}
}

// queue adds the checks of a source that are due. Due is what is left of the last tick.
func queue(ctx context.Context, pipe redis.Pipeliner, s *source, due *float64, elapsed time.Duration) {
	if s.active > 0 && elapsed%(s.active+s.quiet) >= s.active {
		return
	}
	for *due += s.rate * tick.Seconds(); *due >= 1; *due-- {
		pipe.Do(ctx, s.check()...)
	}
}

// notLimitgate returns the error by which a server shows that it does not know RL.CHECK.
func notLimitgate(replies []redis.Cmder) error {
	for _, r := range replies {
		if err := r.Err(); err != nil && strings.HasPrefix(err.Error(), "ERR unknown command") {
			return err
		}
	}
	return nil
}

func countDenied(replies []redis.Cmder) (n int) {
	for _, r := range replies {
		if fields, err := r.(*redis.Cmd).Slice(); err == nil && len(fields) > 0 && fields[0] == int64(0) {
			n++
		}
	}
	return n
}
