package config

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// TryRevision returns a set in which the revision of a gate is tried beside set, which
// was compiled from the same parts of a table with the same options. A revision that is
// not in the table is not tried. With an error, the returned set is set itself.
func TryRevision(name string, parts map[string]json.RawMessage, set *limit.Set, gate table.Gate, opts limit.CompileOptions) (*limit.Set, error) {
	body := parts[table.RevisionKey(gate.Revision)]
	if gate.Revision == 0 || gate.Share() == 0 || body == nil {
		return set, nil
	}
	revision := RevisionName(gate.Revision)
	tried, err := table.ReadRevision(body)
	if err != nil {
		return set, fmt.Errorf("try %s: %w", revision, err)
	}
	for key, body := range parts {
		if table.IsTenant(key) {
			tried[key] = body
		}
	}
	opts.IDs = set.IDs
	next, _, err := CompileParts(name, tried, opts)
	if err != nil {
		return set, fmt.Errorf("try %s: %w", revision, err)
	}
	next.Version = revision
	return set.Try(next, gate.Share()), nil
}

// RevisionName returns the name of a revision in messages.
func RevisionName(n int64) string { return fmt.Sprintf("revision %d", n) }

// RevisionNumber returns the number of the revision with a name.
func RevisionNumber(name string) (n int64, ok bool) {
	_, err := fmt.Sscanf(name, "revision %d", &n)
	return n, err == nil
}

// SplitRevision returns the body of a revision with the plans and the shared limits of a
// file's parts.
func SplitRevision(parts map[string]json.RawMessage) (json.RawMessage, error) {
	tried := maps.Clone(parts)
	maps.DeleteFunc(tried, func(key string, _ json.RawMessage) bool { return !table.IsPart(key) || table.IsTenant(key) })
	body, err := json.Marshal(tried)
	if err != nil {
		return nil, fmt.Errorf("split limits: %w", err)
	}
	return body, nil
}
