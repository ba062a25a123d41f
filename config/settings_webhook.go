package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// webhookSettings are the settings of the endpoint that receives events.
func webhookSettings(s *Settings) settings {
	return settings{
		{
			name: "webhook.url", group: groupWebhook,
			usage: "the URL that events are posted to, as Standard Webhooks says; empty is nowhere", value: optional(webhookURL(&s.WebhookURL), &s.WebhookURL),
		},
		{
			name: "webhook.secret_file", group: groupWebhook,
			usage: "the file of the secret that signs them, whsec_ and base64; read before each attempt", value: filePath(&s.WebhookSecretFile),
		},
	}
}

var (
	errWebhookURL  = errors.New("it is not the URL of an endpoint; write for example https://hooks.example.com/limits")
	errWebhookHTTP = errors.New("events would cross the network unencrypted; write https, or the http URL of this machine, for example http://127.0.0.1:8080/limits")
	errWebhookUser = errors.New("a URL of events must not contain a user or a password: the secret of --webhook-secret-file signs them")
)

// webhookURL parses the URL of an endpoint. Errors do not repeat it, since a part of it may be a
// password.
func webhookURL(to *string) value {
	return value{arg: "URL", shape: stringOnly, read: func(text string) error {
		*to = text // also a wrong one, so that webhookProblems does not miss it
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
			return errWebhookURL
		case u.User != nil:
			return errWebhookUser
		case u.Scheme == "http" && !isLoopback(net.JoinHostPort(u.Hostname(), u.Port())):
			return errWebhookHTTP
		}
		if n, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || n == 0) {
			return fmt.Errorf("%s is not a port; it must be a number from 1 to 65535", Quote(u.Port()))
		}
		return nil
	}}
}

// webhookProblems checks the settings of the endpoint that receives events.
func (s *Settings) webhookProblems() []problem {
	switch {
	case s.WebhookURL != "" && s.WebhookSecretFile == "":
		return []problem{{"webhook.url", "its receiver must be able to tell who sends events: set --webhook-secret-file"}}
	case s.WebhookURL == "" && s.WebhookSecretFile != "":
		return []problem{{"webhook.secret_file", "it signs events, and there is no receiver of them: set --webhook-url"}}
	}
	return nil
}
