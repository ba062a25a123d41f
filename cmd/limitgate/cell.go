package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/limitgate/limitgate/dynamo"
	"github.com/limitgate/limitgate/metrics"
	"github.com/limitgate/limitgate/table"
)

// beatEvery is how often a proxy says that its cell is there.
const beatEvery = 10 * time.Second

// cell is the cell that a proxy is in.
type cell struct {
	id       string
	weight   int64
	registry *dynamo.Registry
	log      *slog.Logger
}

// beat says that the cell is there.
func (c *cell) beat(ctx context.Context) {
	if err := c.registry.Beat(ctx, c.id, c.weight, time.Now()); err != nil && ctx.Err() == nil {
		c.log.Warn("the cell could not say that it is there, and keeps its part of the limits", "cell", c.id, "error", err)
	}
}

// run says so now and then until ctx ends.
func (c *cell) run(ctx context.Context) error {
	for ctx.Err() == nil {
		c.beat(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(beatEvery/2 + rand.N(beatEvery/2)):
		}
	}
	return nil
}

// cellMetrics are what the limits in use say of the cells, as they are scraped.
func (t *tableSource) cellMetrics() (m metrics.Cells) {
	it, ok := t.Item(table.KeyCells)
	set, err := table.ReadCellSet(it.Body)
	if !ok || err != nil { // all of each limit, then
		return metrics.Cells{Active: 1, Share: 1, Limits: t.Set().Limits}
	}
	m.Version, m.Active = it.Version, len(set.Active())
	cells, place := set.Sharing(t.cell.id, t.cell.weight)
	total := int64(0)
	for _, c := range cells {
		total += c.Weight
	}
	m.Share = float64(cells[place].Weight) / float64(total)
	m.Limits = t.Set().Limits
	return m
}
