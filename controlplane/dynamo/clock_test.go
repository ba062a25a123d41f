package dynamo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// TestClockOfAWS: after the first response, heartbeats are written by the clock of AWS,
// and returned by this machine's. A small difference is ignored.
func TestClockOfAWS(t *testing.T) {
	for ahead, corrected := range map[time.Duration]bool{0: false, 2 * time.Second: false, time.Hour: true, -48 * time.Hour: true} {
		written := time.Now().Add(ahead) // a moment ago, by the clock of AWS
		table := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			_, _ = fmt.Fprintf(w, `{"Count":1,"Items":[{"pk":{"S":"CELL#a"},"heartbeat":{"N":"%d"}}]}`, written.UnixMilli())
		}))
		t.Cleanup(table.Close)
		r := NewRegistry(aws.Config{
			Region: "eu-west-1", BaseEndpoint: &table.URL, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		}, "cells")
		cells, err := r.Cells(t.Context())
		if err != nil || len(cells) != 1 {
			t.Fatal(cells, err)
		}
		want := ahead
		if corrected {
			want = 0
		}
		if off := time.Until(cells[0].Beat); (off - want).Abs() > 2*time.Second {
			t.Errorf("of an AWS that is %s ahead the heartbeat is %s off, want %s", ahead, off, want)
		}
		if off := time.Until(r.clock.toAWS(time.Now())); (off - ahead + want).Abs() > 2*time.Second {
			t.Errorf("to an AWS that is %s ahead a heartbeat of %s from now is written", ahead, off)
		}
	}
}
