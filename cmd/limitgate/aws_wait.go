package main

import (
	"fmt"
	"io"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// quietWait is how long a call of AWS may take without a line on stderr.
const quietWait = 5 * time.Second

// noteWait writes a line to w if end is not called within quietWait: the AWS client tries
// again for more than a minute before its error comes. Nothing is written after end has
// returned.
func noteWait(w io.Writer, what string) (end func()) {
	written := make(chan struct{})
	note := time.AfterFunc(quietWait, func() {
		defer close(written)
		fmt.Fprintf(w, "limitgate: %s: the calls of AWS take longer than %v, and go on; if they hang, check AWS_REGION, AWS_ENDPOINT_URL if it is set, and the network\n", table.Printable(what), quietWait)
	})
	return func() {
		if !note.Stop() {
			<-written
		}
	}
}
