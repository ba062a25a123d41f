package resp

import "strconv"

// AppendArray appends the header of an array of n elements.
func AppendArray(b []byte, n int) []byte {
	b = strconv.AppendInt(append(b, '*'), int64(n), 10)
	return append(b, '\r', '\n')
}

// AppendBulk appends a string.
func AppendBulk[S string | []byte](b []byte, s S) []byte {
	b = strconv.AppendInt(append(b, '$'), int64(len(s)), 10)
	b = append(b, '\r', '\n')
	b = append(b, s...)
	return append(b, '\r', '\n')
}

// AppendNumber appends n as a string: commands have no other numbers.
func AppendNumber(b []byte, n int64) []byte {
	var digits [20]byte
	return AppendBulk(b, strconv.AppendInt(digits[:0], n, 10))
}

// AppendCommand appends a command.
func AppendCommand(b []byte, words ...string) []byte {
	b = AppendArray(b, len(words))
	for _, w := range words {
		b = AppendBulk(b, w)
	}
	return b
}
