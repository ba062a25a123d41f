package grpcserver

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestClients: clients of gRPC for Go get their own messages back, of all sizes, many at once and while
// others are cancelled.
func TestClients(t *testing.T) {
	l := listen(t)
	serve(t, testOptions(nil), l)
	var clients sync.WaitGroup
	for seed := range uint64(4) {
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		for caller := range uint64(20) {
			clients.Go(func() {
				random := rand.New(rand.NewPCG(seed, caller))
				for range 60 {
					callEcho(t, conn, random)
				}
			})
		}
	}
	clients.Wait()
}

// callEcho sends a random message, and may cancel the call.
func callEcho(t *testing.T, conn *grpc.ClientConn, random *rand.Rand) {
	size := random.IntN(100)
	if random.IntN(10) == 0 {
		size = random.IntN(MaxMessage - 10)
	}
	sent := &wrapperspb.BytesValue{Value: bytes.Repeat([]byte{byte(random.Uint32())}, size)}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cancelled := random.IntN(10) == 0
	if cancelled {
		time.AfterFunc(time.Duration(random.IntN(500))*time.Microsecond, cancel)
	}
	var got wrapperspb.BytesValue
	err := conn.Invoke(ctx, echo, sent, &got)
	switch code := status.Code(err); {
	case cancelled && code == codes.Canceled:
	case code == codes.ResourceExhausted && strings.Contains(err.Error(), "wait"): // beside many large ones
	case err != nil:
		t.Errorf("%d bytes: %v", size, err)
	case !bytes.Equal(got.GetValue(), sent.GetValue()):
		t.Errorf("%d bytes: got %d others", size, len(got.GetValue()))
	}
}

// TestStatus: a client of gRPC for Go reads the statuses.
func TestStatus(t *testing.T) {
	l := listen(t)
	serve(t, testOptions(nil), l)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, test := range []struct {
		path, header string
		size         int
		want         codes.Code
		text         string
	}{
		{echo, "", 10, codes.OK, ""},
		{fail, "", 10, codes.NotFound, "100% été\n"},
		{crash, "", 10, codes.Internal, "internal error"},
		{"/test/None", "", 10, codes.Unimplemented, "unknown method"},
		{echo, "", MaxMessage, codes.ResourceExhausted, "a message has at most 262144 bytes"},
		{echo, strings.Repeat("x", 4000), 10, codes.OK, ""},
	} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-long", test.header)
		err := conn.Invoke(ctx, test.path, &wrapperspb.BytesValue{Value: make([]byte, test.size)}, &wrapperspb.BytesValue{})
		if st := status.Convert(err); st.Code() != test.want || st.Message() != test.text {
			t.Errorf("%s with %d bytes: %v, want %v %q", test.path, test.size, err, test.want, test.text)
		}
	}
}
