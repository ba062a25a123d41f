package envoy

import (
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/limitgate/limitgate/limit"
)

// parseRequest parses the message of a request. It refuses one with too many descriptors or entries before it
// allocates any: they are two bytes each in a message, and a hundred in memory.
func parseRequest(message []byte) (*rls.RateLimitRequest, error) {
	if err := checkCounts(message); err != nil {
		return nil, err
	}
	req := new(rls.RateLimitRequest)
	if proto.Unmarshal(message, req) != nil {
		return nil, errMessage
	}
	return req, nil
}

// The numbers of the fields descriptors of a request and entries of a descriptor:
// https://github.com/envoyproxy/envoy/blob/main/api/envoy/service/ratelimit/v3/rls.proto
const (
	descriptorsField protowire.Number = 2
	entriesField     protowire.Number = 1
)

var (
	errMessage   = status.Error(codes.InvalidArgument, "the message is malformed")
	errManyInOne = status.Errorf(codes.InvalidArgument, "a request has at most %d descriptors, and these %d entries", limit.MaxDescriptors, maxEntries)
)

// checkCounts returns an error for the message of a request with too many descriptors or entries.
func checkCounts(message []byte) error {
	descriptors, entries := 0, 0
	err := eachField(message, descriptorsField, func(descriptor []byte) error {
		if descriptors++; descriptors > limit.MaxDescriptors {
			return errManyInOne
		}
		return eachField(descriptor, entriesField, func([]byte) error {
			if entries++; entries > maxEntries {
				return errManyInOne
			}
			return nil
		})
	})
	return err
}

// eachField calls do with each value of a field that is a message.
func eachField(message []byte, field protowire.Number, do func(value []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errMessage
		}
		message = message[n:]
		if number == field && kind == protowire.BytesType {
			value, n := protowire.ConsumeBytes(message)
			if n < 0 {
				return errMessage
			}
			if err := do(value); err != nil {
				return err
			}
			message = message[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return errMessage
		}
		message = message[n:]
	}
	return nil
}
