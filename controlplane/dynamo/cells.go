package dynamo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/limitgate/limitgate/controlplane/table"
)

// The attributes of a registered cell, beside attrKey.
const (
	attrState  = "state"
	attrWeight = "weight"
	attrBeat   = "heartbeat" // ms since the epoch
)

// The states of a registered cell.
const (
	stateActive   = "active"
	stateDraining = "draining"
)

const (
	// prefixCell begins the keys of registered cells.
	prefixCell = "CELL#"
	// beatLeast is the age of a heartbeat from which a later one is written: only one
	// of all proxies of a cell writes.
	beatLeast = 5 * time.Second
	// beatAhead is how far ahead a heartbeat may be: a later one is from a wrong clock,
	// and another proxy of the cell overwrites it. It is not more than
	// controlplane.CellAhead.
	beatAhead = time.Minute
)

// ErrNoCell is returned for a cell that was never registered.
var ErrNoCell = errors.New("there is no such cell")

// Registry is a DynamoDB table of the registered cells. Any number of goroutines may
// use it.
type Registry struct {
	client *dynamodb.Client
	name   string
	clock  clock
}

// NewRegistry returns the registry in the table with a name.
func NewRegistry(config aws.Config, name string) *Registry {
	return &Registry{client: dynamodb.NewFromConfig(config), name: name}
}

// Beat writes the heartbeat of a cell. A new cell is registered as active, with a
// weight. The time is that of the clock of AWS, if known.
func (r *Registry) Beat(ctx context.Context, id string, weight int64, now time.Time) error {
	now = r.clock.toAWS(now)
	out, err := r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &r.name, Key: cellKey(id),
		UpdateExpression:         aws.String("SET #b = :now, #w = if_not_exists(#w, :weight), #s = if_not_exists(#s, :active)"),
		ConditionExpression:      aws.String("attribute_not_exists(#b) OR #b < :before OR #b > :ahead"),
		ExpressionAttributeNames: map[string]string{"#b": attrBeat, "#w": attrWeight, "#s": attrState},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now": number(now.UnixMilli()), ":before": number(now.Add(-beatLeast).UnixMilli()), ":ahead": number(now.Add(beatAhead).UnixMilli()), ":weight": number(weight), ":active": text(stateActive),
		},
	})
	if err == nil {
		r.clock.note(out.ResultMetadata)
	}
	var refused *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &refused) { // otherwise another proxy was first
		return fmt.Errorf("register cell %s in %s: %w", id, r.name, Plain(r.client, r.name, err))
	}
	return nil
}

// SetDraining sets whether a cell is draining, that is, to get no more traffic. It
// returns ErrNoCell for a cell that was never registered.
func (r *Registry) SetDraining(ctx context.Context, id string, draining bool) error {
	state := stateActive
	if draining {
		state = stateDraining
	}
	return r.change(ctx, id, attrState, text(state))
}

// SetWeight sets the weight of a cell. It returns ErrNoCell for a cell that was never
// registered.
func (r *Registry) SetWeight(ctx context.Context, id string, weight int64) error {
	return r.change(ctx, id, attrWeight, number(weight))
}

func (r *Registry) change(ctx context.Context, id, attribute string, value types.AttributeValue) error {
	_, err := r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &r.name, Key: cellKey(id),
		UpdateExpression:          aws.String("SET #a = :value"),
		ConditionExpression:       aws.String("attribute_exists(pk)"),
		ExpressionAttributeNames:  map[string]string{"#a": attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":value": value},
	})
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		return fmt.Errorf("change cell %s: %w", id, ErrNoCell)
	}
	if err != nil {
		return fmt.Errorf("change cell %s: %w", id, Plain(r.client, r.name, err))
	}
	return nil
}

// Forget deletes a cell and its report. The next heartbeat registers it again.
func (r *Registry) Forget(ctx context.Context, id string) error {
	for _, key := range []string{prefixCell + id, prefixReport + id} {
		_, err := r.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &r.name, Key: map[string]types.AttributeValue{attrKey: text(key)}})
		if err != nil {
			return fmt.Errorf("forget cell %s: %w", id, Plain(r.client, r.name, err))
		}
	}
	return nil
}

// Cells returns the registered cells, in the order of their ids, with heartbeats by
// this machine's clock.
func (r *Registry) Cells(ctx context.Context) (cells []table.RegisteredCell, err error) {
	err = r.scan(ctx, prefixCell, func(name string, attributes map[string]types.AttributeValue) {
		cell := table.RegisteredCell{Cell: table.Cell{ID: name, Weight: integer(attributes[attrWeight])}, Beat: time.UnixMilli(integer(attributes[attrBeat]))}
		if state, ok := attributes[attrState].(*types.AttributeValueMemberS); ok {
			cell.Draining = state.Value == stateDraining
		}
		cells = append(cells, cell)
	})
	for i := range cells {
		cells[i].Beat = r.clock.fromAWS(cells[i].Beat)
	}
	slices.SortFunc(cells, func(a, b table.RegisteredCell) int { return cmp.Compare(a.ID, b.ID) })
	return cells, err
}

// CheckKey returns an error if the key of the table is one that cells do not fit: such a table never has one.
func (r *Registry) CheckKey(ctx context.Context) error {
	if problem := keyProblem(ctx, r.client, r.name, "cells"); problem != "" {
		return fmt.Errorf("scan %s: %s", r.name, problem)
	}
	return nil
}

// scan calls found for each item whose key begins with prefix, with the rest of its
// key.
func (r *Registry) scan(ctx context.Context, prefix string, found func(name string, attributes map[string]types.AttributeValue)) error {
	pages := dynamodb.NewScanPaginator(r.client, &dynamodb.ScanInput{TableName: &r.name, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("scan %s: %w", r.name, Plain(r.client, r.name, err))
		}
		r.clock.note(page.ResultMetadata)
		for _, attributes := range page.Items {
			if key, ok := attributes[attrKey].(*types.AttributeValueMemberS); ok {
				if name, ok := strings.CutPrefix(key.Value, prefix); ok {
					found(name, attributes)
				}
			}
		}
	}
	return nil
}

func cellKey(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrKey: text(prefixCell + id)}
}
