package limit

import "bytes"

// RefundCall returns how many of the items that are given back, from the first on, belong
// to one call: those behind each other whose answer is kept under the same key. A bucket
// stands in a call once, so that an answer that was given twice is given back twice.
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
