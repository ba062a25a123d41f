package servers

import (
	"fmt"
	"os"
	"strconv"
)

// EnvoyRatelimit is a running envoyproxy/ratelimit.
type EnvoyRatelimit struct {
	Addr string // for gRPC

	claim   *port
	process *process
}

// StartEnvoyRatelimit runs a binary of envoyproxy/ratelimit with its log in folder. Its limits are the
// files of root/ratelimit/config, its counters are in a Redis, and it records no metrics, which costs it
// least. Other variables of this process's environment apply. It does not listen yet.
func StartEnvoyRatelimit(binary, folder, root, redis string) (*EnvoyRatelimit, error) {
	claim, err := reservePort(ratelimitPorts)
	if err != nil {
		return nil, err
	}
	what := program{name: "envoyproxy/ratelimit", path: binary, environment: []string{
		"GRPC_HOST=127.0.0.1", "GRPC_PORT=" + strconv.Itoa(claim.number), "HOST=127.0.0.1", "PORT=0", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0",
		"CONFIG_TYPE=FILE", "RUNTIME_ROOT=" + root, "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_APPDIRECTORY=config", "RUNTIME_WATCH_ROOT=false",
		"BACKEND_TYPE=redis", "REDIS_TYPE=SINGLE", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis,
		"USE_STATSD=false", "DISABLE_STATS=true",
	}}
	r := &EnvoyRatelimit{Addr: loopbackAddr(claim.number), claim: claim}
	if r.process, err = startProcess(what, folder, 1, nil); err != nil {
		claim.release()
		return nil, err
	}
	return r, nil
}

// PID is the id of the process.
func (r *EnvoyRatelimit) PID() int { return r.process.pid }

// CheckRunning returns nil while the process runs, and else an error with its log.
func (r *EnvoyRatelimit) CheckRunning() error {
	if r.process.hasEnded() {
		return fmt.Errorf("envoyproxy/ratelimit ended, its log is:\n%s", r.Log())
	}
	return nil
}

// Log returns the log so far.
func (r *EnvoyRatelimit) Log() string {
	log, err := os.ReadFile(r.process.logPath)
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// Close ends the process and frees its port.
func (r *EnvoyRatelimit) Close() error {
	err := r.process.kill()
	r.claim.release()
	return err
}
