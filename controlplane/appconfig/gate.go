// Package appconfig keeps the gate of a rollout in AWS AppConfig: which revision of the
// limits is tried, and on how many of the tenants. It promises that what could be read last
// stays while AppConfig does not answer.
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

// Prefix begins what people call a configuration: appconfig://APPLICATION/ENVIRONMENT/PROFILE.
const Prefix = "appconfig://"

const (
	// pollWanted is how often a configuration is asked for: the shortest that AppConfig
	// takes, in seconds.
	pollWanted = 15
	// pollLeast and pollMost bound what AppConfig says of that.
	pollLeast = time.Second
	pollMost  = time.Hour
	// pollTimeout bounds one poll, with what is asked again in it: whoever looks learns soon
	// that AppConfig does not answer.
	pollTimeout = 15 * time.Second
	// maxBody bounds a configuration, in bytes: a gate has three numbers.
	maxBody = 64 << 10
)

// Name is a configuration by the ids that AppConfig has given.
type Name struct{ Application, Environment, Profile string }

// ParseName reads appconfig://APPLICATION/ENVIRONMENT/PROFILE.
func ParseName(text string) (n Name, err error) {
	rest, ok := strings.CutPrefix(text, Prefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return n, fmt.Errorf("%.200q is no configuration: write %sAPPLICATION/ENVIRONMENT/PROFILE, by their ids", text, Prefix)
	}
	return Name{parts[0], parts[1], parts[2]}, nil
}

// Poller asks for a configuration again and again. Run does the work.
type Poller struct {
	client *appconfigdata.Client
	name   Name
	apply  func(body []byte)
	failed func(error)

	mu    sync.Mutex // guards what follows, and that only one asks
	token *string    // nil before the first session, and after an error
	pause time.Duration
}

// NewPoller returns a poller of a configuration. Apply is called with each one that is new,
// and failed with each error, both on the goroutine of Poll or Run.
func NewPoller(config aws.Config, name Name, apply func(body []byte), failed func(error)) *Poller {
	return &Poller{client: appconfigdata.NewFromConfig(config), name: name, apply: apply, failed: failed}
}

// Poll asks once.
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
			return fmt.Errorf("ask AppConfig: %w", err)
		}
		p.token = session.InitialConfigurationToken
	}
	out, err := p.client.GetLatestConfiguration(ctx, &appconfigdata.GetLatestConfigurationInput{ConfigurationToken: p.token})
	if none := (*types.ResourceNotFoundException)(nil); errors.As(err, &none) {
		return fmt.Errorf("ask AppConfig: nothing was deployed to %s/%s/%s", p.name.Application, p.name.Environment, p.name.Profile)
	}
	if err != nil {
		return fmt.Errorf("ask AppConfig: %w", err)
	}
	if out.NextPollConfigurationToken == nil { // or each poll would begin a session, a second apart
		return errors.New("ask AppConfig: the answer has no token for the next poll: it is from somebody else")
	}
	p.token = out.NextPollConfigurationToken
	p.pause = min(pollMost, max(pollLeast, time.Duration(out.NextPollIntervalInSeconds)*time.Second))
	if n := len(out.Configuration); n > maxBody {
		return fmt.Errorf("ask AppConfig: the configuration has %d bytes, more than %d", n, maxBody)
	} else if n > 0 { // empty is what was there before
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
