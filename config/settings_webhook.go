package config

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

var webhookReceiver = receiver{
	kind: "an endpoint", data: "events", example: "https://hooks.example.com/limits", local: "http://127.0.0.1:8080/limits",
	secret: "the secret of --webhook-secret-file signs them",
}

// webhookURL parses the URL of an endpoint.
func webhookURL(to *string) value {
	return value{arg: "URL", shape: stringOnly, read: func(text string) error {
		*to = text // also a wrong one, so that webhookProblems does not miss it
		_, err := webhookReceiver.parse(text)
		return err
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
