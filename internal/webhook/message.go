package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	// maxBody bounds the body of a request, in bytes. Standard Webhooks recommends less than 20 kB.
	maxBody = 16 << 10
	// maxID bounds the id of an event, in bytes: receivers remember them.
	maxID = 64
)

// Event is an event for the endpoint.
type Event struct {
	// ID is the header webhook-id, by which a receiver recognizes an event that it has received before:
	// 1 to 64 letters, digits, - and _. It has no point, since points separate the signed parts.
	ID string
	// Type names the kind of the event, as words with points between them.
	Type string
	// At is when it happened.
	At time.Time
	// Data is anything that has a form in JSON.
	Data any
}

// message is an event as it is sent.
type message struct {
	id, kind string
	body     []byte
	since    time.Time // when it was queued
}

// payload is the body of a request.
type payload struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data"`
}

// newMessage encodes an event.
func newMessage(e Event) (message, error) {
	if !isID(e.ID) {
		return message{}, fmt.Errorf("its id %.80q is not 1 to %d letters, digits, - and _", e.ID, maxID)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // no page has it, and an escape is six bytes long
	err := encoder.Encode(payload{e.Type, e.At.UTC(), e.Data})
	body := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	switch {
	case err != nil:
		return message{}, fmt.Errorf("encode event: %w", err)
	case len(body) > maxBody:
		return message{}, fmt.Errorf("its body has %d bytes, at most %d", len(body), maxBody)
	}
	return message{id: e.ID, kind: e.Type, body: body}, nil
}

func isID(text string) bool {
	return text != "" && len(text) <= maxID && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}
