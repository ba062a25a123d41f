package limit

import (
	"fmt"

	"github.com/limitgate/limitgate/limit/bucket"
)

// DescribeOnError describes how n instances decide requests while the store is
// unavailable, and how far they may exceed the limit.
func (l *Limit) DescribeOnError(n int64) string {
	if n <= 1 || l.Action != ActionLimit || l.OnError == OnErrorClosed {
		return l.OnError.String()
	}
	share := l.Params.Share(n).Capacity
	text := fmt.Sprintf("%s: each of %d instances admits %d units at once and 1/%d of the rate", l.OnError, n, share, n)
	if l.Params.Algorithm == bucket.AlgorithmConcurrency {
		text = fmt.Sprintf("%s: each of %d instances gives %d slots, beside those held before", l.OnError, n, share)
	}
	if over := share*n - l.Params.Capacity; over > 0 {
		text += fmt.Sprintf(", together up to %d units beyond the limit", over)
	}
	return text
}
