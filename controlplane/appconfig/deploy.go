package appconfig

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/appconfig"
	"github.com/aws/aws-sdk-go-v2/service/appconfig/types"
)

// DefaultStrategy is one of AppConfig's own: all proxies at once. The gate limits how
// many tenants are tried.
const DefaultStrategy = "AppConfig.AllAtOnce"

const (
	// stopPause is the pause before another attempt after a deployment was stopped, and
	// stopTries bounds the attempts.
	stopPause = time.Second
	stopTries = 10
)

// Deployments deploys configurations. Any number of goroutines may use it.
type Deployments struct {
	client *appconfig.Client
	name   Name
}

// NewDeployments returns the deployments of a configuration.
func NewDeployments(config aws.Config, name Name) *Deployments {
	return &Deployments{appconfig.NewFromConfig(config), name}
}

// Deploy deploys a body with a strategy. It stops a deployment that is in the way.
func (d *Deployments) Deploy(ctx context.Context, body []byte, strategy, description string) error {
	made, err := d.client.CreateHostedConfigurationVersion(ctx, &appconfig.CreateHostedConfigurationVersionInput{
		ApplicationId: &d.name.Application, ConfigurationProfileId: &d.name.Profile, Content: body, ContentType: aws.String("application/json"),
		Description: &description,
	})
	if err != nil {
		return fmt.Errorf("deploy gate: %w", err)
	}
	in := &appconfig.StartDeploymentInput{
		ApplicationId: &d.name.Application, EnvironmentId: &d.name.Environment, ConfigurationProfileId: &d.name.Profile,
		ConfigurationVersion: aws.String(fmt.Sprint(made.VersionNumber)), DeploymentStrategyId: &strategy, Description: &description,
	}
	_, err = d.client.StartDeployment(ctx, in)
	for tries := 0; isConflict(err) && tries < stopTries && ctx.Err() == nil; tries++ {
		if tries > 0 { // a stopped deployment is rolled back first
			select {
			case <-ctx.Done():
			case <-time.After(stopPause):
			}
		} else if err := d.stop(ctx); err != nil {
			return fmt.Errorf("deploy gate: another deployment is in the way: %w", err)
		}
		_, err = d.client.StartDeployment(ctx, in)
	}
	if err != nil {
		return fmt.Errorf("deploy gate: %w", err)
	}
	return nil
}

// isConflict reports whether another deployment is in the way.
func isConflict(err error) bool {
	var conflict *types.ConflictException
	return errors.As(err, &conflict)
}

// Close deploys a gate without a revision, with the default strategy. Why is for
// people.
func (d *Deployments) Close(ctx context.Context, gate []byte, why string) error {
	return d.Deploy(ctx, gate, DefaultStrategy, why)
}

// Latest describes the latest deployment of this configuration for people; it is empty
// if there was none.
func (d *Deployments) Latest(ctx context.Context) (string, error) {
	pages := appconfig.NewListDeploymentsPaginator(d.client, &appconfig.ListDeploymentsInput{ApplicationId: &d.name.Application, EnvironmentId: &d.name.Environment})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx) // the latest deployment comes first
		if err != nil {
			return "", fmt.Errorf("list deployments: %w", err)
		}
		for _, one := range page.Items {
			mine, err := d.isMine(ctx, one.DeploymentNumber)
			if err != nil {
				return "", err
			}
			if mine {
				return d.describe(ctx, &one)
			}
		}
	}
	return "", nil
}

// describe returns the number, the state and the content of a deployment.
func (d *Deployments) describe(ctx context.Context, one *types.DeploymentSummary) (string, error) {
	version, err := strconv.ParseInt(aws.ToString(one.ConfigurationVersion), 10, 32)
	if err != nil {
		return "", fmt.Errorf("read deployment %d: %w", one.DeploymentNumber, err)
	}
	out, err := d.client.GetHostedConfigurationVersion(ctx, &appconfig.GetHostedConfigurationVersionInput{
		ApplicationId: &d.name.Application, ConfigurationProfileId: &d.name.Profile, VersionNumber: aws.Int32(int32(version)),
	})
	if err != nil {
		return "", fmt.Errorf("read deployment %d: %w", one.DeploymentNumber, err)
	}
	return fmt.Sprintf("deployment %d, %s: %s", one.DeploymentNumber, strings.ToLower(string(one.State)), out.Content), nil
}

// stop stops a deployment of this configuration that is under way.
func (d *Deployments) stop(ctx context.Context) error {
	pages := appconfig.NewListDeploymentsPaginator(d.client, &appconfig.ListDeploymentsInput{ApplicationId: &d.name.Application, EnvironmentId: &d.name.Environment})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("list deployments: %w", err)
		}
		for _, one := range page.Items {
			if one.State != types.DeploymentStateDeploying && one.State != types.DeploymentStateBaking && one.State != types.DeploymentStateValidating {
				continue
			}
			if mine, err := d.isMine(ctx, one.DeploymentNumber); err != nil || !mine {
				if err != nil {
					return err
				}
				continue
			}
			if _, err := d.client.StopDeployment(ctx, &appconfig.StopDeploymentInput{
				ApplicationId: &d.name.Application, EnvironmentId: &d.name.Environment, DeploymentNumber: aws.Int32(one.DeploymentNumber),
			}); err != nil {
				return fmt.Errorf("stop deployment %d: %w", one.DeploymentNumber, err)
			}
		}
	}
	return nil
}

// isMine reports whether a deployment is of this configuration: the environment may
// have others.
func (d *Deployments) isMine(ctx context.Context, number int32) (bool, error) {
	out, err := d.client.GetDeployment(ctx, &appconfig.GetDeploymentInput{
		ApplicationId: &d.name.Application, EnvironmentId: &d.name.Environment, DeploymentNumber: aws.Int32(number),
	})
	if err != nil {
		return false, fmt.Errorf("read deployment %d: %w", number, err)
	}
	return aws.ToString(out.ConfigurationProfileId) == d.name.Profile, nil
}
