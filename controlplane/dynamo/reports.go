package dynamo

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/limitgate/limitgate/controlplane/table"
)

const (
	// prefixReport begins the keys of reports, and the id of the cell follows.
	prefixReport = "REPORT#"
	attrWindow   = "window"
	attrShares   = "shares" // JSON, compressed
	// maxReport bounds a report that is read, in bytes: a thousand names of 512.
	maxReport = 1 << 20
)

// Report writes what a cell admitted, in place of its last report.
func (r *Registry) Report(ctx context.Context, report table.Report) error {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // a name that is all < would take six times its size
	if err := encoder.Encode(report.Shares); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err := r.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &r.name, Item: map[string]types.AttributeValue{
		attrKey: text(prefixReport + report.Cell), attrWindow: number(report.Window), attrShares: &types.AttributeValueMemberB{Value: packed.Bytes()},
	}})
	if err != nil {
		return fmt.Errorf("report: %w", Plain(r.client, r.name, err))
	}
	return nil
}

// Reports returns the latest report of each cell, in no order. It leaves out reports
// that cannot be parsed.
func (r *Registry) Reports(ctx context.Context) (reports []table.Report, err error) {
	err = r.scan(ctx, prefixReport, func(name string, attributes map[string]types.AttributeValue) {
		report := table.Report{Cell: name, Window: integer(attributes[attrWindow])}
		packed, ok := attributes[attrShares].(*types.AttributeValueMemberB)
		if !ok {
			return
		}
		body, err := gzip.NewReader(bytes.NewReader(packed.Value))
		if err == nil && json.NewDecoder(io.LimitReader(body, maxReport)).Decode(&report.Shares) == nil {
			reports = append(reports, report)
		}
	})
	return reports, err
}
