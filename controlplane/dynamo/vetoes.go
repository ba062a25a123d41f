package dynamo

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	// prefixVeto begins the keys of vetoes, and the number of the revision follows.
	prefixVeto = "VETO#"
	attrWhy    = "why"
)

// vetoKey returns the key of the veto of a revision.
func vetoKey(revision int64) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrKey: text(prefixVeto + strconv.FormatInt(revision, 10))}
}

// Veto records that a revision of limits must not be tried any more, and why, for
// people. One of several vetoes stays.
func (r *Registry) Veto(ctx context.Context, revision int64, why string) error {
	item := vetoKey(revision)
	item[attrWhy] = text(why)
	if _, err := r.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &r.name, Item: item}); err != nil {
		return fmt.Errorf("veto revision %d: %w", revision, Plain(r.client, r.name, err))
	}
	return nil
}

// Vetoes returns the vetoed revisions, and why.
func (r *Registry) Vetoes(ctx context.Context) (map[int64]string, error) {
	vetoes := map[int64]string{}
	err := r.scan(ctx, prefixVeto, func(name string, attributes map[string]types.AttributeValue) {
		why, _ := attributes[attrWhy].(*types.AttributeValueMemberS)
		if revision, err := strconv.ParseInt(name, 10, 64); err == nil && why != nil {
			vetoes[revision] = why.Value
		}
	})
	return vetoes, err
}

// VetoOf returns why a revision was vetoed, if it was.
func (r *Registry) VetoOf(ctx context.Context, revision int64) (why string, vetoed bool, err error) {
	out, err := r.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &r.name, Key: vetoKey(revision), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return "", false, fmt.Errorf("read veto of revision %d: %w", revision, Plain(r.client, r.name, err))
	}
	reason, vetoed := out.Item[attrWhy].(*types.AttributeValueMemberS)
	if vetoed {
		why = reason.Value
	}
	return why, vetoed, nil
}

// ForgetVeto deletes the veto of a revision.
func (r *Registry) ForgetVeto(ctx context.Context, revision int64) error {
	if _, err := r.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &r.name, Key: vetoKey(revision)}); err != nil {
		return fmt.Errorf("forget veto of revision %d: %w", revision, Plain(r.client, r.name, err))
	}
	return nil
}
