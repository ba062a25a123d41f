package resp

import "errors"

// ErrReply is returned for a reply of a shape or size that no command of this program has.
// The connection is of no use after it: the bytes that follow cannot be interpreted.
var ErrReply = errors.New("decode reply: unexpected reply")

// ErrNumber is returned for an integer that is out of range. Reading goes on after it,
// because it does not concern other calls.
const ErrNumber = Error("LGFORMAT a number that the script does not reply")

// Error is an error reply.
type Error string

func (e Error) Error() string { return string(e) }

// RedisError makes Error a redis.Error, like the errors of go-redis.
func (Error) RedisError() {}

// AsError returns the error reply in err, if there is one.
func AsError(err error) (Error, bool) {
	if err == nil {
		return "", false // the common case: skips the allocation of the variable below
	}
	var reply Error
	ok := errors.As(err, &reply)
	return reply, ok
}
