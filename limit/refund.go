package limit

import "bytes"

// RefundCall returns how many of the items to refund, from the first on, belong to one
// call: consecutive items with the same record key. A call has each bucket once, so that
// an answer that was replayed is refunded once for each caller.
func RefundCall(items []Item) int {
	once := items[0].RecordKey
	if once == nil {
		return 1
	}
	for n := 1; n < len(items); n++ {
		if !bytes.Equal(items[n].RecordKey, once) {
			return n
		}
		for i := range n {
			if bytes.Equal(items[i].Name, items[n].Name) {
				return n
			}
		}
	}
	return len(items)
}
