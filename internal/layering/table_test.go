package layering

// row describes one package.
type row struct {
	reason string
	// imports are the packages of this repository that non-test code may import.
	imports []string
	// everything lifts the limit on imports. Packages that are for tests stay
	// out of reach for non-test code.
	everything bool
	// forTests means that only tests may import the package.
	forTests bool
	// testsOnly means that the package has only tests.
	testsOnly bool
	// settled means that the package receives all settings: it reads no file, no flag and
	// no environment by itself.
	settled bool
}

// table has a row for every package, from the bottom up.
var table = map[string]row{
	"limit/bucket": {
		reason:  "the maths, from numbers to numbers",
		settled: true,
	},
	"limit": {
		reason:  "the model, which every package may use",
		imports: []string{"limit/bucket"},
		settled: true,
	},
	"limiter": {
		reason:  "the decision calls stores through its own interfaces",
		imports: []string{"limit", "limit/bucket", "internal/latency"},
		settled: true,
	},
	"internal/breaker": {
		reason:  "counts successes and failures of any calls",
		settled: true,
	},
	"internal/logthrottle": {
		reason:  "counts lines in time, whatever they say",
		settled: true,
	},
	"internal/wrongport": {
		reason:  "looks at the first bytes of connections, whatever they are for",
		imports: []string{"internal/logthrottle"},
		settled: true,
	},
	"memory": {
		reason:  "an engine that knows buckets, and not its callers",
		imports: []string{"limit", "limit/bucket"},
		settled: true,
	},
	"cluster": {
		reason:  "a store beside memory, they don't know each other",
		imports: []string{"limit", "limit/bucket", "internal/breaker", "internal/latency", "internal/logthrottle", "internal/resp", "internal/run"},
		settled: true,
	},
	"cluster/doctor": {
		reason:  "examines a store over the connections that a store opens",
		imports: []string{"cluster", "limit", "limit/bucket", "internal/resp"},
	},
	"internal/resp": {
		reason:  "bytes of one protocol, without their meaning",
		settled: true,
	},
	"internal/adminserver": {
		reason:  "serves any handler over bounded connections",
		settled: true,
	},
	"internal/tlsfiles": {
		reason: "makes TLS configurations of files, whose paths it receives",
	},
	"internal/redisauth": {
		reason:  "supplies passwords to anything that logs in",
		imports: []string{"internal/run"},
		settled: true,
	},
	"internal/logwriter": {
		reason:  "writes lines, whatever they are",
		settled: true,
	},
	"internal/sdnotify": {
		reason:  "reports states to a service manager, whatever the service is",
		settled: true,
	},
	"internal/run": {
		reason:  "runs functions, whatever they do",
		settled: true,
	},
	"backstop": {
		reason:  "a share of the limit, kept and bounded in its own way",
		imports: []string{"limit", "limit/bucket"},
		settled: true,
	},
	"internal/instances": {
		reason:  "counts proxies, by a store or servers that it knows as interfaces and protocols",
		imports: []string{"internal/logthrottle", "internal/run"},
		settled: true,
	},
	"internal/rlsxds": {
		reason:  "receives bytes from an xDS server, and does not know their meaning",
		imports: []string{"internal/logthrottle", "internal/run"},
		settled: true,
	},
	"server": {
		reason:  "connections and commands, independent of their meaning",
		imports: []string{"internal/logthrottle"},
		settled: true,
	},
	"internal/jwks": {
		reason:  "keys of a file or a URL that it receives",
		settled: true,
	},
	"internal/jwks/jwkstest": {
		reason:  "signs tokens for tests",
		settled: true,
	},
	"internal/jwtauth": {
		reason:  "checks tokens of clients by keys",
		imports: []string{"internal/jwks"},
		settled: true,
	},
	"internal/failures": {
		reason:  "limits failures by our own maths, whatever fails",
		imports: []string{"limit/bucket"},
		settled: true,
	},
	"internal/users": {
		reason:  "checks passwords and rights, whatever they are for",
		imports: []string{"internal/failures"},
		settled: true,
	},
	"internal/bypass": {
		reason:  "checks tokens by keys, and takes shares of their rate",
		imports: []string{"limit", "limit/bucket", "backstop", "internal/failures", "internal/jwks", "internal/logthrottle"},
		settled: true,
	},
	"commands": {
		reason:  "parse, decide, reply: it knows the decision and not the stores behind it",
		imports: []string{"limit", "limit/bucket", "limiter", "internal/users", "internal/bypass", "internal/denials", "internal/httpfields", "internal/latency"},
		settled: true,
	},
	"internal/httpapi": {
		reason:  "another front: it asks the handler of commands by names in place of positions",
		imports: []string{"limit", "limit/bucket", "commands", "internal/users", "internal/httpfields"},
		settled: true,
	},
	"internal/alerts": {
		reason:  "a table and texts made of it: of the other packages it knows the names of metrics",
		settled: true,
	},
	"internal/edge": {
		reason:  "numbers and text made of limits: it reads no file, and calls nothing of AWS; config describes broken YAML",
		imports: []string{"config", "limit", "limit/bucket"},
		settled: true,
	},
	"examples/demo": {
		reason: "a client, which knows the protocol alone",
	},
	"internal/emf": {
		reason:  "writes counts in one format, whatever was counted, to a file whose path it receives",
		imports: []string{"internal/run"},
	},
	"internal/tracing": {
		reason:  "makes spans of typed decisions; its library reads the environment",
		imports: []string{"limit", "internal/logthrottle", "internal/run"},
	},
	"internal/emf/emftest": {
		reason:   "reads that format for tests, and knows no other package",
		forTests: true,
		settled:  true,
	},
	"internal/webhook": {
		reason:  "delivers events, whatever they are about, and reads its secrets through one function",
		imports: []string{"internal/logthrottle", "internal/run"},
		settled: true,
	},
	"internal/dashboard": {
		reason:  "shows what a proxy decides, which it reads through one function",
		imports: []string{"limit", "limiter", "memory", "metrics", "commands", "internal/denials", "internal/latency", "internal/users"},
		settled: true,
	},
	"internal/denials": {
		reason:  "keeps typed decisions for people",
		imports: []string{"limit"},
		settled: true,
	},
	"internal/rlsconfig": {
		reason:  "reads the configuration of other software, and knows no limiter",
		imports: []string{"config", "limit", "limit/bucket"},
	},
	"internal/envoy": {
		reason:  "is a front: it makes requests of descriptors, and answers of decisions",
		imports: []string{"limit", "limit/bucket", "limiter", "internal/grpcserver", "internal/latency", "internal/logthrottle", "internal/rlsconfig", "internal/run"},
		settled: true,
	},
	"internal/grpcserver": {
		reason:  "serves methods of gRPC, and knows none",
		imports: []string{"internal/run"},
		settled: true,
	},
	"internal/nearlimit": {
		reason:  "makes events of typed decisions",
		imports: []string{"limit"},
		settled: true,
	},
	"internal/latency": {
		reason:  "counts durations, and knows nothing else",
		imports: []string{},
		settled: true,
	},
	"internal/httpfields": {
		reason:  "writes decisions as header fields, for every front",
		imports: []string{"limit", "limit/bucket"},
		settled: true,
	},
	"metrics": {
		reason:  "counts typed decisions",
		imports: []string{"limit", "internal/latency"},
		settled: true,
	},
	"examples": {
		reason:  "the sample limits as bytes, built into the binary",
		settled: true,
	},
	"examples/envoy": {
		reason:    "decodes configurations of other software, and compares them with limits",
		testsOnly: true,
	},
	"internal/accesslog": {
		reason:  "reads lines of other software, from the reader of its caller",
		imports: []string{"limit"},
		settled: true,
	},
	"internal/replay": {
		reason:  "decides past requests with the real limiter on the store in memory, and what proxies decide by themselves",
		imports: []string{"backstop", "limit", "limiter", "memory", "internal/accesslog"},
		settled: true,
	},
	"config": {
		reason:  "reads settings and the limits file, which the command passes on",
		imports: []string{"limit", "controlplane/table"},
	},
	"controlplane/table": {
		reason:  "the items of a table of limits, independent of the table's place",
		settled: true,
	},
	"controlplane/catalog": {
		reason:  "one set made of a table's items, received from any reader of the table",
		imports: []string{"limit", "controlplane/table", "internal/logthrottle"},
	},
	"controlplane/dynamo": {
		reason:  "the table and its messages on AWS, and not their use",
		imports: []string{"controlplane/table"},
		settled: true,
	},
	"controlplane/admission": {
		reason:  "counts the units that typed decisions admit",
		imports: []string{"limit"},
		settled: true,
	},
	"controlplane/appconfig": {
		reason:  "the gate of a rollout on AWS, and not its content",
		settled: true,
	},
	"controlplane/rollout": {
		reason:  "decides the same request by two limiters, each on a part of the limits in memory",
		imports: []string{"limit", "limiter", "backstop"},
		settled: true,
	},
	"controlplane/audit": {
		reason:  "writes changes to a bucket, and reads them back",
		imports: []string{"controlplane/table", "internal/logthrottle"},
		settled: true,
	},
	"controlplane": {
		reason:  "carries changes on, between interfaces to their source and their receivers",
		imports: []string{"limit", "controlplane/table", "internal/logthrottle", "internal/run"},
		settled: true,
	},
	"controlplane/awscheck": {
		reason:  "checks the assumptions of the code in an account, as its user",
		imports: []string{"controlplane/table", "controlplane/dynamo", "controlplane/audit", "controlplane"},
	},
	"internal/awsclient": {
		reason: "finds AWS by the environment, for the commands",
	},
	"cmd/limitgate-lambda": {
		reason:     "wires the control plane for AWS Lambda",
		everything: true,
	},
	"internal/proxy": {
		reason:     "assembles a proxy of all its parts",
		everything: true,
	},
	"scripts/licences": {
		reason: "checks dependencies, of which it knows the folders",
	},
	"scripts/sbom": {
		reason: "reads a binary",
	},
	"internal/capacity": {
		reason:  "arithmetic of numbers that it receives, and a built-in list of prices",
		settled: true,
	},
	"internal/drill": {
		reason:  "a table of texts, and a client of Redis: it decides nothing, and the command gives it the checks to send",
		imports: []string{"internal/run"},
		settled: true,
	},
	"internal/limitimport": {
		reason:  "turns text into text: it knows the syntax of limits files, not their meaning, and takes suggestions and bounds of limit; config describes broken YAML",
		imports: []string{"internal/rlsconfig", "internal/httpfields", "config", "limit", "limit/bucket"},
	},
	"internal/rlsenv": {
		reason:  "reads the environment of other software, which it receives as text",
		imports: []string{"limit"},
		settled: true,
	},
	"scripts/tour_picture": {
		reason: "draws docs/tour.md, and is part of no binary",
	},
	"cmd/limitgate": {
		reason:     "wires everything, and nothing imports it",
		everything: true,
	},
	"integration": {
		reason:     "tests of the whole with real servers",
		everything: true,
		testsOnly:  true,
	},
	"clients": {
		reason:    "drives clients of other modules and languages from outside",
		testsOnly: true,
	},
	"deploy/cloudformation": {
		reason:    "compares a template with the code that uses its resources",
		testsOnly: true,
	},
	"deploy/checks": {
		reason:    "compares files with the program, which it knows from outside",
		testsOnly: true,
	},
	"internal/simulation": {
		reason:    "a fleet of the real parts in simulated time, for its tests alone",
		testsOnly: true,
	},
	"internal/judge": {
		reason:    "random histories on all stores, compared with the reference, for its tests alone",
		testsOnly: true,
	},
	"internal/storetest": {
		reason:   "the contract of every store, stated through the limiter that uses it",
		imports:  []string{"limit", "limit/bucket", "limiter"},
		forTests: true,
	},
	"internal/isolation": {
		reason:   "makes commands of users, and knows no other package",
		forTests: true,
		settled:  true,
	},
	"internal/reference": {
		reason:   "decides by the documents alone, so that no mistake of the maths is in it too",
		forTests: true,
		settled:  true,
	},
	"internal/linear": {
		reason:   "a model of limits written from their documentation: it shares no maths with the code under test",
		forTests: true,
		settled:  true,
	},
	"internal/load": {
		reason:  "sends bytes and counts replies; of Redis it knows the hash slot of a key",
		imports: []string{"limit"},
		settled: true,
	},
	"bench": {
		reason:  "measures programs from outside, as their clients and their operators see them",
		imports: []string{"internal/load", "internal/servers", "internal/resp"},
	},
	"bench/limitgate-bench": {
		reason:  "a command line around the benchmark",
		imports: []string{"bench"},
	},
	"internal/servers": {
		reason: "starts processes, and does not know their use",
	},
	"internal/redistest": {
		reason:   "starts real servers for the tests of any package",
		imports:  []string{"internal/faultnet", "internal/servers"},
		forTests: true,
	},
	"internal/awstest": {
		reason:   "starts a real emulator of AWS for the tests of any package",
		imports:  []string{"internal/leftout", "internal/servers"},
		forTests: true,
	},
	"internal/leftout": {
		reason: "the one reason for which a test may be skipped",
	},
	"internal/syncbuffer": {
		reason:   "keeps bytes for the tests of any package",
		forTests: true,
		settled:  true,
	},
	"internal/faultnet": {
		reason: "forwards any bytes badly",
	},
	"internal/testreport": {
		reason: "runs go test on any packages, and counts",
	},
	"internal/tablemodel": {
		reason: "runs real control planes and proxies of a table in simulated time",
	},
	"internal/layering": {
		reason: "looks at all packages from outside",
	},
}
