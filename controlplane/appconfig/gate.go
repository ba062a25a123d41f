// Package appconfig stores the gate of a rollout in AWS AppConfig: the revision of the
// limits that is tried, and the percentage of tenants. It promises that the last
// configuration read stays in use while AppConfig fails.
package appconfig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/appconfigdata"
	"github.com/aws/aws-sdk-go-v2/service/appconfigdata/types"
)

// Prefix begins the URL of a configuration:
// appconfig://APPLICATION/ENVIRONMENT/PROFILE.
const Prefix = "appconfig://"

const (
	// pollWanted is the requested poll interval, in seconds: the shortest that
	// AppConfig accepts.
	pollWanted = 15
	// pollLeast and pollMost bound the poll interval that AppConfig returns.
	pollLeast = time.Second
	pollMost  = time.Hour
	// pollTimeout bounds one poll, retries included, so that a failure of AppConfig is
	// soon reported.
	pollTimeout = 15 * time.Second
	// maxBody bounds a configuration, in bytes: a gate has three numbers.
	maxBody = 64 << 10
)

// Name identifies a configuration by the ids that AppConfig assigned.
type Name struct{ Application, Environment, Profile string }

// ParseName parses appconfig://APPLICATION/ENVIRONMENT/PROFILE.
func ParseName(text string) (n Name, err error) {
	rest, ok := strings.CutPrefix(text, Prefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return n, fmt.Errorf("%.200q is not a configuration: write %sAPPLICATION/ENVIRONMENT/PROFILE, by their ids", text, Prefix)
	}
	return Name{parts[0], parts[1], parts[2]}, nil
}

// Poller polls a configuration. Run does the work.
type Poller struct {
	client *appconfigdata.Client
	name   Name
	apply  func(body []byte)
	failed func(error)

	mu    sync.Mutex // guards the fields below, and serializes polls
	token *string    // nil before the first session, and after an error
	pause time.Duration
}

// NewPoller returns a poller of a configuration. Apply is called with each new one, and
// failed with each error, both on the goroutine of Poll or Run.
func NewPoller(config aws.Config, name Name, apply func(body []byte), failed func(error)) *Poller {
	return &Poller{client: appconfigdata.NewFromConfig(config), name: name, apply: apply, failed: failed}
}

// Poll polls once.
func (p *Poller) Poll(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	if err := p.poll(limited); err != nil {
		p.token, p.pause = nil, pollWanted*time.Second
		if !errors.Is(ctx.Err(), context.Canceled) {
			p.failed(err)
		}
	}
}

func (p *Poller) poll(ctx context.Context) error {
	if p.token == nil {
		session, err := p.client.StartConfigurationSession(ctx, &appconfigdata.StartConfigurationSessionInput{
			ApplicationIdentifier: &p.name.Application, EnvironmentIdentifier: &p.name.Environment, ConfigurationProfileIdentifier: &p.name.Profile,
			RequiredMinimumPollIntervalInSeconds: aws.Int32(pollWanted),
		})
		if err != nil {
			return fmt.Errorf("poll AppConfig: %w", err)
		}
		p.token = session.InitialConfigurationToken
	}
	out, err := p.client.GetLatestConfiguration(ctx, &appconfigdata.GetLatestConfigurationInput{ConfigurationToken: p.token})
	if none := (*types.ResourceNotFoundException)(nil); errors.As(err, &none) {
		return fmt.Errorf("poll AppConfig: nothing was deployed to %s/%s/%s", p.name.Application, p.name.Environment, p.name.Profile)
	}
	if err != nil {
		return fmt.Errorf("poll AppConfig: %w", err)
	}
	if out.NextPollConfigurationToken == nil { // otherwise each poll would begin a session, a second apart
		return errors.New("poll AppConfig: the response has no token for the next poll, so it is not from AppConfig")
	}
	p.token = out.NextPollConfigurationToken
	p.pause = min(pollMost, max(pollLeast, time.Duration(out.NextPollIntervalInSeconds)*time.Second))
	if n := len(out.Configuration); n > maxBody {
		return fmt.Errorf("poll AppConfig: the configuration has %d bytes, more than %d", n, maxBody)
	} else if n > 0 { // empty means unchanged
		p.apply(out.Configuration)
	}
	return nil
}

// Run polls until ctx ends.
func (p *Poller) Run(ctx context.Context) error {
	for {
		p.mu.Lock()
		pause := p.pause // 0 before the first poll
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		p.Poll(ctx)
	}
}
