package awstest

import (
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"go.uber.org/goleak"

	"github.com/limitgate/limitgate/internal/leftout"
	"github.com/limitgate/limitgate/internal/servers"
)

// TestEmulatorDiesAndComesBack: the emulator answers, is gone when killed, restarts
// empty on the same port, and leaves no process.
func TestEmulatorDiesAndComesBack(t *testing.T) {
	leftout.WithoutAWS(t)
	var pid int
	before := goleak.IgnoreCurrent()
	t.Run("run", func(t *testing.T) {
		a := Start(t)
		addr := a.Addr
		if arn := a.Topic(t, "limits"); !strings.HasSuffix(arn, ":limits") || !strings.Contains(arn, region) {
			t.Errorf("a topic has the ARN %s", arn)
		}
		if err := a.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(a.PID(), 0); err != syscall.ESRCH {
			t.Errorf("after Kill there is a process %d: %v", a.PID(), err)
		}
		if err := a.Restart(); err != nil {
			t.Fatal(err)
		}
		pid = a.PID()
		if a.Addr != addr {
			t.Errorf("it moved from %s to %s", addr, a.Addr)
		}
		if got := a.Queues(t); len(got) != 0 {
			t.Errorf("a new emulator has queues: %v", got)
		}
		if env := a.Environment(); !slices.Contains(env, "AWS_ENDPOINT_URL=http://"+addr) {
			t.Errorf("the environment leads elsewhere: %v", env)
		}
	})
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("after the test there is a process %d: %v", pid, err)
	}
	goleak.VerifyNone(t, before)
}

// TestWithoutAnEmulator: without an emulator the error explains how to get it.
func TestWithoutAnEmulator(t *testing.T) {
	t.Setenv(servers.MotoVariable, os.DevNull)
	_, err := servers.StartMoto(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "pip install 'moto[server]==5.2.1'") {
		t.Errorf("got %v", err)
	}
}

// TestTables: clients and processes find the server of the tables, and a relay counts
// the faults that it injects.
func TestTables(t *testing.T) {
	a := StartAtomic(t)
	relay := &Relay{Throttle: 1}
	list := func(a *AWS) error {
		_, err := dynamodb.NewFromConfig(a.Config, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }).ListTables(t.Context(), &dynamodb.ListTablesInput{})
		return err
	}
	if err := list(a); err != nil {
		t.Errorf("tables of %s: %v", a.Tables, err)
	}
	throttled := a.Through(t, relay)
	var told smithy.APIError
	if err := list(throttled); !errors.As(err, &told) || !strings.HasPrefix(told.ErrorCode(), "ProvisionedThroughput") && told.ErrorCode() != "ThrottlingException" {
		t.Errorf("a request that is throttled: %v", err)
	}
	if n := relay.Throttled.Load(); n != 1 {
		t.Errorf("%d requests were throttled", n)
	}
	for _, other := range []*AWS{a, throttled} {
		if arn := other.Topic(t, "limits"); arn == "" {
			t.Error("there is nothing but tables")
		}
	}
	if env := throttled.Environment(); slices.Contains(env, "AWS_ENDPOINT_URL_DYNAMODB=http://"+a.tables) || !slices.Contains(env, "AWS_ENDPOINT_URL=http://"+a.Addr) {
		t.Errorf("the environment of what is behind a relay: %v", env)
	}
}

// TestTablesAreOnLoopback: other machines on the network cannot reach them.
func TestTablesAreOnLoopback(t *testing.T) {
	a := StartAtomic(t)
	_, port, err := net.SplitHostPort(a.tables)
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range addrs {
		ip := addr.(*net.IPNet).IP
		if ip.IsLoopback() || ip.IsLinkLocalUnicast() {
			continue
		}
		if conn, err := net.Dial("tcp", net.JoinHostPort(ip.String(), port)); err == nil {
			_ = conn.Close()
			t.Errorf("the tables of %s are found at %s", a.Tables, conn.RemoteAddr())
		}
	}
}

// TestDynamoDBLocalIsWanted: without DynamoDB Local the error explains how to get it.
func TestDynamoDBLocalIsWanted(t *testing.T) {
	t.Setenv(servers.DynamoDBVariable, "")
	_, err := servers.StartDynamoDBLocal(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "scripts/provision.sh dynamodb") {
		t.Errorf("got %v", err)
	}
	if a := StartAtomic(t); !strings.HasPrefix(a.Tables, "moto") {
		t.Errorf("the tables are those of %s", a.Tables)
	}
}

// TestShare: tests share one emulator, and none of their data. The emulator stays as
// long as keep requires, and no longer.
func TestShare(t *testing.T) {
	leftout.WithoutAWS(t)
	sharedMoto.keep()
	var pids []int
	for range 2 {
		t.Run("test", func(t *testing.T) {
			a, b := Share(t), Share(t)
			pids = append(pids, a.PID(), b.PID())
			if n := len(a.Queues(t)) + len(b.Queues(t)); n != 0 {
				t.Errorf("new accounts have %d queues", n)
			}
			if _, err := sqs.NewFromConfig(a.Config).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")}); err != nil {
				t.Fatal(err)
			}
			if own, others := len(a.Queues(t)), len(b.Queues(t)); own != 1 || others != 0 {
				t.Errorf("after one has made a queue there are %d and %d", own, others)
			}
		})
	}
	if len(slices.Compact(pids)) != 1 || syscall.Kill(pids[0], 0) != nil {
		t.Errorf("four tests had processes %d", pids)
	}
	if err := sharedMoto.endKeeping(); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(pids[0], 0); err != syscall.ESRCH {
		t.Errorf("in the end there is a process %d: %v", pids[0], err)
	}
}
