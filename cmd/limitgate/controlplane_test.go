package main

import (
	"log/slog"
	"testing"

	"github.com/limitgate/limitgate/dynamo"
	"github.com/limitgate/limitgate/table"
)

// TestRestoreNothing: what was no item of limits is not written again when it is changed or
// deleted by hand, and does not end the control plane, which would meet it again and again.
func TestRestoreNothing(t *testing.T) {
	foreign, unsigned := &table.Item{Key: "somebody's"}, &table.Item{Key: "TENANT#a"}
	for _, r := range []dynamo.Record{
		{Before: foreign},
		{After: foreign},
		{Before: foreign, After: foreign},
		{Before: unsigned},
		{After: unsigned},
		{Before: &table.Item{Key: "TENANT#a", Version: 3, Deleted: true}, After: unsigned},
	} {
		// There is no table to write to.
		if err := restore(t.Context(), nil, r, slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
