package main

import (
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"
)

// region keeps the program from the real AWS and from the settings of the user who runs
// the test.
func region(t *testing.T, name string) {
	t.Helper()
	for variable, value := range map[string]string{
		"AWS_REGION": name, "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(variable, value)
	}
}

// settle builds the handler of an environment.
func settle(t *testing.T, environment map[string]string) (handler, error) {
	t.Helper()
	return newHandler(t.Context(), readSettings(func(name string) string { return environment[name] }), slog.New(slog.DiscardHandler))
}

// TestSettings: each role gets its handler.
func TestSettings(t *testing.T) {
	region(t, "eu-central-1")
	all := map[string]string{
		"LIMITGATE_TABLE": "limits", "LIMITGATE_TOPIC": "arn:aws:sns:eu-central-1:123456789012:limits", "LIMITGATE_DEAD_LETTERS": "http://127.0.0.1/queue",
		"LIMITGATE_AUDIT_BUCKET": "audit", "LIMITGATE_CELLS_TABLE": "cells", "LIMITGATE_ROLLOUT_GATE": "appconfig://limits/production/gate",
	}
	for role, want := range map[string]reflect.Type{
		"relay": reflect.TypeFor[*relay](), "audit": reflect.TypeFor[*auditor](), "cells": reflect.TypeFor[*overseer](),
	} {
		all["LIMITGATE_ROLE"] = role
		h, err := settle(t, all)
		if err != nil || reflect.TypeOf(h) != want {
			t.Fatalf("%s is a %T, %v", role, h, err)
		}
		switch h := h.(type) {
		case *relay:
			if h.handler.DeadLetter == nil {
				t.Error("dead letters go nowhere")
			}
		case *overseer:
			if h.rollouts.Close == nil {
				t.Error("no handler closes the gate")
			}
		}
	}
	// The optional settings are missing.
	for _, environment := range []map[string]string{
		{"LIMITGATE_ROLE": "relay", "LIMITGATE_TABLE": "limits", "LIMITGATE_TOPIC": "arn"},
		{"LIMITGATE_ROLE": "cells", "LIMITGATE_TABLE": "limits", "LIMITGATE_CELLS_TABLE": "cells"},
	} {
		if _, err := settle(t, environment); err != nil {
			t.Errorf("%v: %v", environment, err)
		}
	}
}

// TestMistakesInSettings: a missing setting is an error that names it.
func TestMistakesInSettings(t *testing.T) {
	region(t, "eu-central-1")
	for _, c := range []struct {
		environment map[string]string
		says        string
	}{
		{nil, `LIMITGATE_ROLE is "": say relay, with LIMITGATE_TABLE and LIMITGATE_TOPIC; audit,`},
		{map[string]string{"LIMITGATE_ROLE": "Relay", "LIMITGATE_TABLE": "limits", "LIMITGATE_TOPIC": "arn"}, `LIMITGATE_ROLE is "Relay": say relay,`},
		{map[string]string{"LIMITGATE_ROLE": "relay", "LIMITGATE_TABLE": "limits"}, "relay, with LIMITGATE_TABLE and LIMITGATE_TOPIC"},
		{map[string]string{"LIMITGATE_ROLE": "relay", "LIMITGATE_TOPIC": "arn"}, "relay, with LIMITGATE_TABLE and LIMITGATE_TOPIC"},
		{map[string]string{"LIMITGATE_ROLE": "audit", "LIMITGATE_TABLE": "limits"}, "audit, with LIMITGATE_AUDIT_BUCKET"},
		{map[string]string{"LIMITGATE_ROLE": "cells", "LIMITGATE_TABLE": "limits"}, "cells, with LIMITGATE_TABLE and LIMITGATE_CELLS_TABLE"},
		{map[string]string{"LIMITGATE_ROLE": "cells", "LIMITGATE_CELLS_TABLE": "cells"}, "cells, with LIMITGATE_TABLE and LIMITGATE_CELLS_TABLE"},
		{
			map[string]string{"LIMITGATE_ROLE": "cells", "LIMITGATE_TABLE": "limits", "LIMITGATE_CELLS_TABLE": "cells", "LIMITGATE_ROLLOUT_GATE": "gate"},
			`LIMITGATE_ROLLOUT_GATE: "gate" is not a configuration`,
		},
	} {
		if h, err := settle(t, c.environment); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %T, %v; want it to say %q", c.environment, h, err, c.says)
		}
	}
	region(t, "")
	if h, err := settle(t, map[string]string{"LIMITGATE_ROLE": "audit", "LIMITGATE_AUDIT_BUCKET": "audit"}); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("without a region: %T, %v", h, err)
	}
}
