package bucket

// Algorithm is how a limit counts.
type Algorithm uint8

// The algorithms. A fixed window whose rate is per day or per month (in words)
// is a calendar window: the same algorithm, with windows that a calendar cuts.
const (
	AlgorithmTokenBucket Algorithm = iota + 1
	AlgorithmSlidingWindow
	AlgorithmFixedWindow
	AlgorithmCalendarWindow
	AlgorithmSlidingLog
	AlgorithmConcurrency
)

// String returns the name used in limits files.
func (a Algorithm) String() string {
	switch a {
	case AlgorithmTokenBucket:
		return "token_bucket"
	case AlgorithmSlidingWindow:
		return "sliding_window"
	case AlgorithmFixedWindow, AlgorithmCalendarWindow:
		return "fixed_window"
	case AlgorithmSlidingLog:
		return "sliding_log"
	case AlgorithmConcurrency:
		return "concurrency"
	default:
		return "unknown"
	}
}

// Code is the letter of the algorithm in a bucket's name. A limit whose algorithm changes
// gets new buckets.
func (a Algorithm) Code() byte {
	switch a {
	case AlgorithmTokenBucket:
		return 't'
	case AlgorithmSlidingWindow:
		return 's'
	case AlgorithmSlidingLog:
		return 'l'
	case AlgorithmConcurrency:
		return 'c'
	default:
		return 'f'
	}
}
