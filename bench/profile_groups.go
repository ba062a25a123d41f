package bench

import "strings"

// modulePath is the prefix of the names of Limitgate's own functions.
const modulePath = "github.com/limitgate/limitgate/"

// group is a category of the proxy's time: all functions that begin with one of the
// prefixes. Functions of Limitgate are named without its module's path.
type group struct {
	name     string
	prefixes []string
	// sided divides the group by the other side: clients, the store or the proxy's own
	// loops.
	sided bool
}

// groups are tried in order for each function, from the innermost of a stack outwards,
// and the first match gets the sample. Functions without a group, such as copying memory
// and hashing, belong to their caller.
var groups = []group{
	{"kernel read", []string{"golang.org/x/sys/unix.Read", "golang.org/x/sys/unix.read", "syscall.Read", "syscall.read", "server.readNow"}, true},
	{"kernel write", []string{"golang.org/x/sys/unix.Write", "golang.org/x/sys/unix.write", "syscall.Write", "syscall.write", "server.writeNow"}, true},
	{"kernel epoll", []string{"golang.org/x/sys/unix.Epoll", "server.epollWait", "internal/runtime/syscall/linux.Epoll", "runtime.netpoll"}, false},
	{"kernel futex", []string{"runtime.futex"}, false},
	{"garbage and allocation", []string{
		"runtime.gc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.mallocgc", "runtime.newobject", "runtime.makeslice",
		"runtime.growslice", "runtime.scan", "runtime.grey", "runtime.mark", "runtime.sweep", "runtime.wbBuf", "runtime.(*m",
		"runtime.(*gc", "runtime.(*sweep", "runtime.(*page",
	}, false},
	{"TLS", []string{"crypto/tls."}, false},
	{"gRPC and HTTP/2", []string{"google.golang.org/grpc", "golang.org/x/net/http2"}, false},
	{"protobuf", []string{"google.golang.org/protobuf/", "github.com/envoyproxy/go-control-plane/"}, false},
	{"Envoy's service (envoy, rlsconfig)", []string{"internal/envoy.", "internal/rlsconfig."}, false},
	{"scheduler", []string{
		"runtime.schedule", "runtime.findRunnable", "runtime.park_m", "runtime.mcall", "runtime.mstart", "runtime.ready", "runtime.goready",
		"runtime.wakep", "runtime.startm", "runtime.stopm", "runtime.gosched", "runtime.gopreempt", "runtime.sysmon", "runtime.newproc",
		"runtime.selectgo", "runtime.gopark", "runtime.chan", "runtime.send", "runtime.recv", "runtime.sem", "runtime.note", "runtime.runqgrab",
		"runtime.stealWork", "runtime.(*timer", "runtime.goexit0", "runtime.lock", "runtime.unlock",
	}, false},
	{"taking the profile", []string{"runtime/pprof.", "compress/", "net/http"}, false},
	{"parsing requests", []string{
		"server.(*commandParser)", "server.(*readBuffer)", "server.(*batch)", "server.parse", "commands.(*Session).parse", "commands.parse",
	}, false},
	{"connections and loops (server)", []string{"server."}, false},
	{"resolving limits", []string{"limit.(*Set)", "limit.(*Buffer)", "limiter.(*Batch).resolve"}, false},
	{"deciding (limit, memory)", []string{"limit.", "limit/bucket.", "memory.", "backstop."}, false},
	{"stages of a decision (limiter)", []string{"limiter."}, false},
	{"pipelines (cluster)", []string{"cluster.", "github.com/redis/go-redis/"}, false},
	{"writing replies", []string{"github.com/tidwall/redcon.", "commands.(*reply)", "commands.(*Session).replies", "commands.(*Session).writeDecisions", "commands.(*Session).decision", "commands.(*scratch).frame"}, false},
	{"other commands", []string{"commands."}, false},
	{"counting (metrics)", []string{"metrics.", "github.com/prometheus/"}, false},
}

// The groups of samples that no other group matches.
const (
	ofRuntime  = "runtime, other"
	ofNobody   = "other"
	forClients = ", clients"
	forStore   = ", store"
	forLoops   = ", waking loops"
)

// shortName returns the name of a function in its usual form: without the type arguments
// of a generic one.
func shortName(function string) string {
	if begin, end := strings.IndexByte(function, '['), strings.LastIndexByte(function, ']'); 0 <= begin && begin < end {
		function = function[:begin] + "[...]" + function[end+1:]
	}
	return strings.TrimPrefix(function, modulePath)
}

// groupOf returns the group of a function, or nil.
func groupOf(function string) *group {
	for i := range groups {
		for _, prefix := range groups[i].prefixes {
			if strings.HasPrefix(function, prefix) {
				return &groups[i]
			}
		}
	}
	return nil
}

// classify returns the name of the group of a stack of short names, the innermost first.
func classify(stack []string) string {
	for i, function := range stack {
		g := groupOf(function)
		switch {
		case g == nil:
		case g.sided:
			return g.name + sideOf(stack[i:])
		default:
			return g.name
		}
	}
	if len(stack) > 0 && strings.HasPrefix(stack[0], "runtime.") {
		return ofRuntime
	}
	return ofNobody
}

// sideOf returns the side for which a system call is made.
func sideOf(stack []string) string {
	for _, function := range stack {
		switch {
		case strings.HasPrefix(function, "server.(*eventLoop).post"), strings.HasPrefix(function, "server.(*eventLoop).ready"):
			return forLoops
		case strings.HasPrefix(function, "server."), strings.HasPrefix(function, "google.golang.org/grpc"):
			return forClients
		case strings.HasPrefix(function, "cluster."), strings.HasPrefix(function, "github.com/redis/go-redis/"):
			return forStore
		}
	}
	return ""
}
