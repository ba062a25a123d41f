package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

// sampleLimits is the limits file of the tests.
const sampleLimits = "../../examples/limits.yaml"

// commandMistake is a mistake in the arguments of a command, and a part of its error.
type commandMistake struct {
	args []string
	want string
}

// argumentMistakes are mistakes that need no files of their own.
var argumentMistakes = []commandMistake{
	{[]string{"limits", "push", "--yes", "nope.yaml", "dynamodb://limits"}, "there is no file \"nope.yaml\"\n"},
	{[]string{"replay", "--limits", sampleLimits, "--sort", "nope.log"}, "there is no file \"nope.log\"\n"},
	{[]string{"limits", "lint", "nope.yaml"}, `there is no file "nope.yaml": limitgate limits lint FILE`},
	{[]string{"replay", "--limits", sampleLimits, "nope.log"}, `open access log: there is no file "nope.log"`},
	{[]string{"limits", "import", "envoy", "nope"}, `there is no folder "nope"`},
	{[]string{"limits", "diff", "dynamodb://limits", sampleLimits}, "the table is the second one: limitgate limits diff ../../examples/limits.yaml dynamodb://limits"},
	{[]string{"limits", "diff", sampleLimits, "dynamo://limits"}, "is neither a file nor a table: a table is named dynamodb://TABLE"},
	{[]string{"replay", "--limits", sampleLimits, "--tenant", "query:user", os.DevNull}, "query:user is a field of the log, and fields are written in braces: want {query:user}"},
	{[]string{"replay", "--limits", sampleLimits, os.DevNull}, "read access log: \"/dev/null\" is empty"},
	{[]string{"limits", "suggest", os.DevNull}, "read access log: \"/dev/null\" is empty"},
	{[]string{"limits", "suggest", sampleLimits}, "limits.yaml\" is a limits file, and no log: the last argument is the log"},
	{[]string{"replay", "--limits", sampleLimits, "../../internal/limitimport/testdata/beside.conf"}, "beside.conf\" is a configuration of nginx, and no log: the last argument is the log"},
	{[]string{"limits", "push", "dynamodb://limits", sampleLimits}, "limits push: the table is the second one: limitgate limits push " + sampleLimits + " dynamodb://limits"},
	{[]string{"limits", "history", "acme"}, "limits history: --bucket is missing: limitgate limits history --bucket limits-audit acme, with the bucket that --audit-bucket of limitgate controlplane names"},
	{[]string{"limits", "import", "redis-cell", "x"}, "redis-cell has no limits to import: its clients send them with CL.THROTTLE, which limitgate serve answers as it is; see docs/moving/redis-cell.md"},
	{[]string{"limits", "import", "express-rate-limit", "x"}, "import: the limits of express-rate-limit are in the code of services; see docs/moving/express-rate-limit.md"},
	{[]string{"limits", "import", "upstash", "x"}, "import: the limits of upstash/ratelimit are in the code of services; see docs/moving/upstash.md"},
	{[]string{"limits", "import", "ThrottleCrab"}, "its clients send them with THROTTLE, which limitgate serve answers as it is; see docs/moving/throttlecrab.md"},
	{[]string{"limits", "import", "redis_rate", "x"}, "import: the limits of redis_rate are in the code of services; see docs/moving/redis_rate.md"},
	{[]string{"limits", "import", "nginx", "a", "b"}, `import: "b" is too many: import nginx takes one file: limitgate limits import nginx nginx.conf > limits.yaml`},
	{[]string{"limits", "import", "envoy", shopLimits, "b"}, `import: "b" is too many: import envoy takes one folder`},
	{[]string{"limits", "import", "rules", "dynamodb://limits"}, "is a table of limits: name a file of another limiter"},
	{[]string{"limits", "import", "kong", "kong.yaml", "-o", "limits.yaml"}, "limits import: unknown flag -o; it writes to standard output: limitgate limits import ... > FILE"},
	{[]string{"limits", "suggest", "--output", "limits.yaml", "access.log"}, "limits suggest: unknown flag --output; it writes to standard output: limitgate limits suggest ... > FILE"},
	{[]string{"limits", "import", "kong", "nope"}, "limitgate: limits import: there is no file \"nope\"\n"},
	{[]string{"limits", "import", "envoy", "--tenant-key", "rout", shopLimits}, `--tenant-key: no descriptor has the key "rout"; did you mean route?; the keys are kind, remote_address, route, tenant`},
	{[]string{"--listne", ":6380"}, `a command is missing in front of "--listne"; did you mean limitgate serve --listen?`},
	{[]string{"nope"}, "limitgate: there is no command \"nope\"; limitgate help lists them\n"},
	{[]string{"serve", "--unsafe-open", "yes"}, `"yes" is not a flag: a flag that is a switch has its value behind =, such as --pprof=true, and is on without one`},
	{[]string{"check", "--addr", "127.0.0.1:99999", "acme", "-", "-"}, `--addr "127.0.0.1:99999" has the port "99999", which is no number from 0 to 65535: write HOST:PORT, for example 127.0.0.1:6380`},
	{[]string{"health", "--addr", "127.0.0.1:http"}, `--addr "127.0.0.1:http" has the port "http", which is no number from 0 to 65535: write HOST:PORT, for example 127.0.0.1:9180`},
	{[]string{"check", "--addr", "http://127.0.0.1:22004/", "acme", "-", "-"}, `--addr "http://..." is no address: write HOST:PORT, for example 127.0.0.1:22004`},
	{[]string{"check", "--addr", "http://u:secret@127.0.0.1:22004", "acme", "-", "-"}, `for example 127.0.0.1:6380`},
	{[]string{"limits.yaml"}, `a command is missing in front of "limits.yaml"; did you mean limitgate serve --limits limits.yaml?`},
	{[]string{"serve", "--store", "memory"}, `flag --store: unknown flag; without --redis the buckets are in the memory of this process: leave it out`},
	{[]string{"serve", "--limits-file", "x"}, `flag --limits-file: unknown flag; did you mean --limits?`},
	{[]string{"limits", "--addr", "127.0.0.1:1", "lint", "limits.yaml"}, "limits: --addr asks a running limitgate, which limits lint does not: leave --addr out"},
	{[]string{"replay", "--limits", sampleLimits, "--dim", "user={user},x=1", "nope.log"}, "one dimension belongs to each --dim: write --dim user={user} --dim x=1"},
	{[]string{"limits", "--adr", "127.0.0.1:1"}, "limits: unknown flag --adr; did you mean --addr?"},
	{[]string{"limits", "suggest", "--dim", "user={user}", "x"}, "limits suggest: unknown flag --dim; limits are suggested by tenant, op and ip alone: --tenant and --op take templates of other fields of the log"},
	{[]string{"limits", "import", "--dim", "user={user}", "kong", "x"}, "limits import: unknown flag --dim; limitgate"},
	{[]string{"replay", "--limits", "x", "--log", "y"}, "replay: unknown flag --log; the log is the last argument, without a flag"},
	{[]string{"replay", "--limits", "x", "--out", "y"}, "replay: unknown flag --out; it writes to standard output: limitgate replay ... > FILE"},
	{[]string{"limits", "rollback", "--version", "1"}, "limits rollback: unknown flag --version; --to takes the version"},
	{[]string{"denied", "--addr", "127.0.0.1:1", "-5"}, "denied: unknown flag -5; write the number of rows alone: limitgate denied 20"},
	{[]string{"limits", "diff", "nope", sampleLimits}, `read limits: there is no file "nope" (OLD of limitgate limits diff OLD NEW)`},
	{[]string{"limits", "diff", sampleLimits, "nope"}, `read limits: there is no file "nope" (NEW of limitgate limits diff OLD NEW)`},
	{[]string{"reset", "acme", "api"}, `there is no command "reset"; a running limitgate resets a bucket on RL.RESET tenant limit_id by a Redis client`},
	{[]string{"peek", "acme", "-", "-"}, `there is no command "peek"; did you mean check --peek?`},
	{[]string{"top", "--n", "5"}, "top: unknown flag --n; write the number of rows alone: limitgate top 20"},
	{[]string{"limits", "diff", sampleLimits}, "two files, or a file and a table, are needed: limitgate limits diff old.yaml new.yaml"},
	{[]string{"limits", "--addr", "127.0.0.1:1", sampleLimits}, "a running limitgate is asked here; for a file: limitgate limits lint FILE"},
	{[]string{"limits", "explain", "acme", "-", "-", "1"}, `there is no file "acme": limitgate limits explain FILE TENANT OP IP; limitgate explain asks a running limitgate`},
	{[]string{"drill", "fail-open", "--run", "--redis", "127.0.0.1:1", "--addr", "localhost"}, `--addr "localhost" has no port`},
	{[]string{"limits", "watch", "--updates", "foo", "dynamodb://limits"}, `--updates: "foo" is neither the ARN of an SNS topic nor the URL of an SQS queue: arn:aws:sns:REGION:ACCOUNT:TOPIC`},
	{[]string{"stats", "limitgate:6380"}, "the address of a limitgate is a flag: --addr limitgate:6380"},
	{[]string{"top", "limitgate:6380"}, "the address of a limitgate is a flag: --addr limitgate:6380"},
	{[]string{"limits", "acme"}, "limitgate limits --addr ADDRESS asks a running limitgate"},
	{[]string{"doctor", "--backstop-total-rate", "x"}, `flag --backstop-total-rate: "x" is not a whole number; write it in digits only, for example 100; limitgate doctor --help`},
	{[]string{"drill", "--rate", "99999999999999999999"}, `flag --rate: "99999999999999999999" is out of bounds; limitgate drill --help`},
	{[]string{"edge", "waf", "--margin", "x", sampleLimits}, `flag --margin: "x" is not a number; write for example 100 or 1.5`},
	{[]string{"replay", "--limits", sampleLimits, "--compare", "access.log"}, "limitgate replay: the log is missing: --compare took \"access.log\" as its value: limitgate replay --limits"},
	{[]string{"replay", "--limits", sampleLimits}, "limitgate replay: the log is missing: limitgate replay --limits"},
	{[]string{"limits", "suggest", "--tenant", "access.log"}, "limits suggest: the log is missing: --tenant took \"access.log\" as its value: limitgate limits suggest"},
	{[]string{"limits", "suggest", "--sort"}, "limits suggest: the log is missing: limitgate limits suggest"},
	{[]string{"plan", "--rps", "1 million"}, `plan: flag --rps: "1 million" is not a number: write for example 50000, 50k or 1.5M; limitgate plan --help`},
	{[]string{"rollout", "start", "--percent", "half"}, `rollout start: flag --percent: "half" is not a percentage; write for example 5 or 0.5%; limitgate`},
	{[]string{"rollout", "start", "--percent", "500"}, `rollout start: flag --percent: "500" is out of bounds; write 0 to 100; limitgate`},
	{[]string{"bypass", "keys"}, `there is no command "keys" of bypass; did you mean key?; say key or token`},
	{[]string{"controlplane", "--table", "limits", "--topic", "arn:aws:sns:x:1:t", "--leases", "limits"}, "--leases is the table of limits, limits: name a table of its own"},
	{[]string{"controlplane", "--table", "limits", "--topic", "arn:aws:sns:x:1:t", "--leases", "dynamodb://l"}, "--leases is the name alone: l"},
	{[]string{"controlplane", "--table", "limits", "--topic", "arn:aws:sns:x:1:t", "--leases", "l", "--audit-bucket", "s3://b"}, "--audit-bucket is the name alone: b"},
	{[]string{"controlplane", "--table", "limits", "--topic", "arn:aws:sns:x:1:t", "--leases", "l", "--dead-letters", "dead"}, `controlplane: --dead-letters "dead" is not the URL of an SQS queue: https://sqs.REGION.amazonaws.com/ACCOUNT/NAME`},
	{[]string{"controlplane", "--table", "limits", "--topic", "arn:aws:sns:x:1:t", "--leases", "l", "--admin", "localhost"}, `controlplane: --admin "localhost" has no port: write HOST:PORT, for example 127.0.0.1:9180`},
	{[]string{"audit", "--bucket", "s3://b", "acme"}, "--bucket is the name alone: b"},
	{[]string{"limits", "import", "nginx.conf"}, `there is no import of "nginx.conf"; there are nginx, kong, rules and envoy: limitgate limits import nginx nginx.conf > limits.yaml`},
	{[]string{"drill", "FAILOVER"}, "did you mean failover?"},
	{[]string{"token"}, `there is no command "token"; did you mean bypass token?`},
	{[]string{"validate", sampleLimits}, `there is no command "validate"; did you mean limits lint?`},
	{[]string{"denials"}, "did you mean denied?"},
	{[]string{"doctor", "--host", "x"}, "did you mean --redis?"},
	{[]string{"controlplane", "--table", "limits", "--topic", "limits", "--leases", "leases"}, `--topic "limits" is not the ARN of an SNS topic: arn:aws:sns:REGION:ACCOUNT:limits`},
	{[]string{"controlplane", "--table", "dynamodb://limits", "--topic", "arn:aws:sns:x:1:limits", "--leases", "leases"}, "--table is the name alone: limits"},
	{[]string{"doctor", "--config", "x"}, "did you mean --limits?"},
	{[]string{"limits", "lint", "--config", "x", sampleLimits}, "unknown flag --config; limitgate limits lint --help lists the flags"},
	{[]string{"replay", "--limits", "a.yaml", "--limits", "b.yaml", "x.log"}, "flag --limits: it is given twice, and the limits are those of one file: write all into that"},
	{[]string{"doctor", "--redis", "127.0.0.1:1", "--redis", "127.0.0.1:2"}, "flag --redis: it is given twice; write one list with commas, --redis=HOST:PORT,..."},
	{[]string{"doctor", "127.0.0.1:6379"}, `"127.0.0.1:6379" is not a flag: name the nodes by --redis 127.0.0.1:6379`},
	{[]string{"doctor", "127.0.0.1:7000", "127.0.0.1:7001"}, `"127.0.0.1:7000" is not a flag: name the nodes by --redis 127.0.0.1:7000,127.0.0.1:7001`},
	{[]string{"limits", "lint", "dynamodb://limits"}, "dynamodb://limits is a table, and a file is needed: limitgate limits pull dynamodb://limits > limits.yaml writes one"},
	{[]string{"limits", "lint", "dynamodb://"}, "the name of the table is missing: write dynamodb://TABLE"},
	{[]string{"limits", "pull", "dynamodb://"}, "the name of the table is missing: write dynamodb://TABLE"},
	{[]string{"limits", "push", sampleLimits, "dynamodb://"}, "the name of the table is missing: write dynamodb://TABLE"},
	{[]string{"limits", "diff", sampleLimits, "dynamodb://"}, "the name of the table is missing: write dynamodb://TABLE"},
	{[]string{"limits", "watch", "--updates", "x", "dynamodb://"}, "the name of the table is missing: write dynamodb://TABLE"},
	{[]string{"limits", "confirm", "--bucket", "b", "dynamodb://", "acme"}, "the name of the table is missing: write dynamodb://TABLE"},
	{[]string{"limits", "rollback", "--bucket", "b", "--to", "1", "dynamodb://", "acme"}, "the name of the table is missing: write dynamodb://TABLE"},
	{[]string{"rollout", "abort", "--gate", "appconfig://a/b/c", "dynamodb://"}, "the name of the table is missing: write dynamodb://TABLE"},
	{[]string{"limits", "lint", "file:///etc/limits.yaml"}, "read limits: a file is named by its path: leave out file://"},
	{[]string{"limits", "lint", "dynamo://limits"}, "is no file; a table is written dynamodb://TABLE"},
	{[]string{"bypass"}, "say key or token, such as limitgate bypass key --id 2026 bypass.pem bypass.json"},
	{[]string{"bypass", "token"}, "--key is needed: limitgate bypass token --key bypass.pem"},
	{[]string{"stats", "--every", "5"}, `"5" is not a duration; write it with a unit, for example `},
	{[]string{"stats", "--addr", "127.0.0.1:1"}, "(is limitgate serve running at 127.0.0.1:1?)"},
	{[]string{"suggest", "access.log"}, "there is no command \"suggest\"; did you mean limits suggest?"},
	{[]string{"limits", "lnt", sampleLimits}, "there is no command \"lnt\" of limits; did you mean lint?; limitgate limits --help says more\n"},
	{[]string{"limits", "foo", sampleLimits}, "there is no command \"foo\" of limits; say one of lint, "},
	{[]string{"limits", "lint", "--strict", shopLimits}, "--strict has no effect on a folder of Envoy's limits: it belongs to a limits file"},
	{[]string{"limits", "explain", "--domain", "shop", sampleLimits, "acme", "-", "-"}, "--domain has no effect on a limits file: it belongs to a folder of Envoy's limits"},
	{[]string{"limits", "explain", shopLimits}, "descriptors are needed: limitgate limits explain " + shopLimits + " KEY=VALUE,KEY=VALUE"},
	{[]string{"limits", "explain", shopLimits, "tenant"}, `"tenant" is no entry: write KEY=VALUE`},
	{[]string{"limits", "explain", shopLimits, "acme", "-", "-"}, shopLimits + `" is a folder of Envoy's limits: for a tenant name a limits file`},
	{[]string{"limits", "explain", shopLimits, "--domain", "shp", "tenant=a"}, `there is no domain "shp", and so no limit for its requests; the domains are shop; did you mean shop?`},
	{[]string{"limits", "lint", shopLimits + "/shop.yaml"}, "shop.yaml:3: it is a file of Envoy's limits, whose folder is read: limitgate limits lint " + shopLimits + ", limitgate serve --rls 127.0.0.1:8081 --rls-config " + shopLimits + ", or limitgate limits import envoy " + shopLimits + " for a limits file"},
	{[]string{"limits", "explain", shopLimits + "/shop.yaml", "tenant=acme"}, `shop.yaml" is a file of Envoy's limits, whose folder is read: limitgate limits explain ` + shopLimits + " tenant=acme"},
	{[]string{"limits", "explain", shopLimits + "/shop.yaml", "acme", "-", "-"}, "limitgate limits explain " + shopLimits + " KEY=VALUE,KEY=VALUE"},
	{[]string{"limits", "import", "envy", shopLimits}, `there is no import of "envy"; did you mean envoy?`},
	{[]string{"limits", "import", "nginx"}, "limits import: a file is needed: limitgate limits import nginx nginx.conf > limits.yaml"},
	{[]string{"limits", "check"}, "did you mean lint?"},
	{[]string{"limits", "reload"}, `there is no command "reload" of limits; a running limitgate loads its limits again on RL.CONFIG RELOAD by a Redis client, or on SIGHUP; `},
	{[]string{"stats", "localhost:6380"}, "limitgate stats: the address of a limitgate is a flag: --addr localhost:6380; "},
	{[]string{"top", "127.0.0.1:6380"}, "limitgate top: the address of a limitgate is a flag: --addr 127.0.0.1:6380; "},
	{[]string{"denied", "[::1]:6380"}, "the address of a limitgate is a flag: --addr [::1]:6380; "},
	{[]string{"check", "127.0.0.1:6380"}, "limitgate check: the address of a limitgate is a flag: --addr 127.0.0.1:6380\n"},
	{[]string{"check", "127.0.0.1:6380", "acme", "-", "-"}, "the address of a limitgate is a flag: --addr 127.0.0.1:6380\n"},
	{[]string{"explain", "127.0.0.1:6380"}, "the address of a limitgate is a flag: --addr 127.0.0.1:6380; "},
	{[]string{"limits", "127.0.0.1:6380"}, "limitgate limits: the address of a limitgate is a flag: --addr 127.0.0.1:6380; "},
	{[]string{"check", "org:42", "GET /x", "203.0.113.300"}, "invalid ip '203.0.113.300'"},
	{[]string{"check", "--addr", "127.0.0.1:1", "127.0.0.1:6380"}, "the op and ip are missing"},
	{[]string{"limits", "org:42"}, `there is no command "org:42" of limits; say one of `},
	{[]string{"stats", "acme"}, `"acme" is not a flag: the time between two lines is --every 5s`},
	{[]string{"capacity"}, `there is no command "capacity"; did you mean plan?`},
	{[]string{"limits", "explain"}, `a file, tenant, op and ip are needed: limitgate limits explain limits.yaml acme "POST /v1/payments" 203.0.113.7`},
	{[]string{"limits", "explain", sampleLimits}, `tenant, op and ip are needed: for example acme "GET /x" 203.0.113.7`},
	{[]string{"limits", "explain", sampleLimits, "acme"}, `the op and ip are missing behind the tenant: for example acme "GET /x" 203.0.113.7`},
	{[]string{"limits", "explain", sampleLimits, "acme", "GET /x"}, `the ip is missing behind the op, or - for none: for example acme "GET /x" 203.0.113.7`},
	{[]string{"limits", "explain", "acme", sampleLimits}, `there is no file "acme": limitgate limits explain FILE TENANT OP IP; limitgate explain asks a running limitgate`},
	{[]string{"replay"}, "--limits and the log are missing: limitgate replay --limits limits.yaml access.log.gz"},
	{[]string{"replay", "--limits", sampleLimits, "--op", "{method}", "{path:2}", "a"}, `replay: "a" is one argument too many, as a template that has a blank stands in quotes: limitgate replay`},
	{[]string{"check", "-h", "127.0.0.1", "acme", "-", "-"}, "limitgate check: -h is --help; an address is --addr 127.0.0.1:PORT\n"},
	{[]string{"check", "acme", "-", "-", "--addr", "http://127.0.0.1:22004?password=secret"}, `--addr "http://..." is no address: write HOST:PORT, for example 127.0.0.1:6380`},
	{[]string{"check", "acme", "-", "-", "--addr", "http://token:secret"}, `--addr "http://..." is no address: write HOST:PORT, for example 127.0.0.1:6380`},
	{[]string{"health", "-h", "localhost:9180"}, "limitgate health: -h is --help; an address is --addr localhost:9180\n"},
	{[]string{"check", "-h", "::1", "acme", "-", "-"}, "an address is --addr [::1]:PORT\n"},
	{[]string{"check", "-h", "redis:6380", "acme", "-", "-"}, "an address is --addr redis:6380\n"},
	{[]string{"stats", "5"}, `"5" is not a flag: the time between two lines is --every 5s; `},
	{[]string{"top", "--interval", "5s"}, "did you mean --every?"},
	{[]string{"replay", "--limits", sampleLimits, "a", "b"}, `replay: "b" is one argument too many: limitgate replay`},
	{[]string{"replay", "--limits", sampleLimits, "--tls", "a"}, "--tls has no effect without --against"},
	{[]string{"replay", "--limits", sampleLimits, "--user", "bob", "a"}, "--user has no effect without --against"},
	{[]string{"replay", "--limits", "-", "-"}, "standard input can be the limits file or the log, not both"},
	{[]string{"replay", "--limits", sampleLimits, "--compare", "-", "-"}, "standard input can be the limits file or the log, not both"},
	{[]string{"replay", "--limits", "-", "--compare", "-", "a"}, "standard input can be one of two limits files, not both"},
	{[]string{"replay", "--limits", sampleLimits, "--svg", "nope/x.svg", "a"}, `--svg: there is no folder "nope" for "nope/x.svg"`},
	{[]string{"replay", "--limits", sampleLimits, "--svg", "-", "a"}, "--svg names a file, as standard output has the report: name a new one"},
	{[]string{"replay", "--limits", sampleLimits, "--svg", "main.go", "a"}, `--svg "main.go" would replace a file that is no SVG: name a new one`},
	{[]string{"replay", "--limits", sampleLimits, "--svg", "/dev/null", "a"}, `--svg "/dev/null" is no regular file: name a new one`},
	{[]string{"replay", "--limits", sampleLimits, "--dim", "user=a", "--dim", "user=b", "a"}, `flag --dim: "user=b": the dimension is there twice: leave one out`},
	{[]string{"replay", "--limits", sampleLimits, "--svg", sampleLimits, "a"}, `--svg "` + sampleLimits + `" would replace a file that is read: name a new one`},
	{[]string{"replay", "--limits", sampleLimits, "--tenant", "", "a"}, "it is empty: want text, or fields in braces such as {user} or {route}"},
	{[]string{"replay", "--limits", sampleLimits, "--dim", "user=", "a"}, "it is empty: want text, or fields in braces such as {user} or {route}"},
	{[]string{"rollout", "promot", "--gate", "x"}, `rollout: there is no command "promot" of rollout; did you mean promote?; limitgate rollout --help says more`},
	{[]string{"limits", "lnt", "--strict"}, `there is no command "lnt" of limits; did you mean lint?`},
	{[]string{"limits", "validate", "--strict"}, `there is no command "validate" of limits; did you mean lint?`},
	{[]string{"help", "limits", "explian"}, "limitgate limits: there is no command \"explian\" of limits; did you mean explain?; limitgate help limits lists them\n"},
	{[]string{"limits", "explian", "--help"}, "limitgate limits: there is no command \"explian\" of limits; did you mean explain?; "},
	{[]string{"help", "cells", "x"}, "limitgate cells: there is no command \"x\" of cells; limitgate help cells lists them\n"},
	{[]string{"limits", "rolback", "--bucket", "b"}, "did you mean rollback?"},
	{[]string{"limits", "pul", "--yes"}, "did you mean pull?"},
	{[]string{"bypass", "tokn", "--key", "k"}, `there is no command "tokn" of bypass; did you mean token?`},
	{[]string{"rollout", "--gat", "x"}, "unknown flag --gat"},
	{[]string{"limits", "pull", "dynamodb://limits", "extra"}, `limits pull: "extra" is one argument too many`},
	{[]string{"limits", "pull", "limits"}, `limits pull: "limits" is no table, which is written dynamodb://TABLE`},
	{[]string{"limits", "push", "a.yaml"}, "limits push: the table is missing: limitgate limits push limits.yaml dynamodb://TABLE"},
	{[]string{"limits", "push", "dynamodb://limits"}, "limits push: the file is missing"},
	{[]string{"limits", "diff", "a", "b", "c"}, `limits diff: "c" is one argument too many`},
	{[]string{"limits", "watch", "--updates", "x"}, "limits watch: the table is missing: limitgate limits watch --updates arn:aws:sns:eu-central-1:123456789012:limits dynamodb://limits"},
	{[]string{"limits", "confirm", "--bucket", "b", "dynamodb://limits"}, "limits confirm: the item is missing"},
	{[]string{"limits", "confirm", "dynamodb://limits", "acme"}, "limits confirm: --bucket is missing"},
	{[]string{"limits", "rollback"}, "limits rollback: --bucket, --to, the table and the item are missing"},
	{[]string{"limits", "rollback", "--bucket", "b", "--to", "1", "acme", "dynamodb://limits"}, "limits rollback: the table is the first one: limitgate"},
	{[]string{"limits", "rollback", "--bucket", "b", "--to", "0", "dynamodb://limits", "acme"}, "limits rollback: --to is 0, and the first version of an item is 1"},
	{[]string{"limits", "rollback", "--bucket", "b", "--to", "1", "dynamodb://limits", "acme", "x"}, `"x" is one argument too many`},
	{[]string{"envoy", "serve"}, `limitgate envoy: "serve" is not a flag; limitgate envoy --help lists them`},
	{[]string{"serve", "--redis", "127.0.0.1:7000", "127.0.0.1:7001"}, `limitgate serve: "127.0.0.1:7001" is not a flag; nodes are one list with commas: --redis HOST:PORT,HOST:PORT; limitgate serve --help lists them`},
	{[]string{"serve", "--redis", "127.0.0.1:7000;127.0.0.1:7001"}, `flag --redis: an address holds no blank, equals sign or semicolon; write host:port,host:port`},
	{[]string{"serve", "--listen", "0.0.0.0:1", "limits.yaml"}, `limitgate serve: "limits.yaml" is not a flag; write --limits in front of it`},
	{[]string{"controlplane", "--table", "t", "--topic", "arn:aws:sns:x:1:t"}, "--leases is missing: limitgate controlplane --table limits"},
	{[]string{"controlplane", "--table"}, "flag --table: the value is missing; write --table NAME"},
	{[]string{"rollout", "start"}, "--gate is missing: limitgate rollout start --gate appconfig://"},
	{[]string{"rollout", "abort", "--gate", "appconfig://a/b/c", "x"}, "the last argument is the table, dynamodb://TABLE: limitgate rollout abort --gate appconfig://abc1234/def5678/ghi9012 dynamodb://limits"},
	{[]string{"rollout", "strt"}, `there is no command "strt" of rollout; did you mean start?`},
	{[]string{"aws-check"}, "--table is missing: limitgate aws-check --table limits"},
	{[]string{"cells", "foo"}, `there is no command "foo" of cells; say weight, drain, join or forget`},
	{[]string{"cells", "weight", "--cells", "cells"}, "an argument is missing: limitgate cells weight --cells cells eu-central-1 2"},
	{[]string{"drill", "foo"}, `there is no drill "foo"; there are failover, fail-open,`},
	{[]string{"bypass", "token", "--key", "k", "--id", "a", "--name", "n", "--rate", "1/s", "--for", "800000h"}, "--for is 800000h, which is too long: at most 8784h"},
	{[]string{"bypass", "token", "--key", "k", "--id", "a", "--name", "n", "--rate", "1/s", "--for", "8h", "--burst", "-1"}, "bypass token: --burst is -1: write 1 to 1099511627776, or leave it out for the units of one period; "},
	{[]string{"bypass", "token", "--key", "k", "--for", "400d"}, `bypass token: flag --for: "400d" is not a duration: its units are h, m and s, and a day is 24h; write for example 8h; `},
	{[]string{"bypass", "token", "--key", "k", "--for", "8"}, `flag --for: "8" is not a duration; write it with a unit, for example 8h; `},
	{[]string{"bypass", "token", "--key", "k", "--for", "1m30"}, `flag --for: "1m30" is not a duration: its last number has no unit; write 1m30s; `},
	{[]string{"limits", "lint", "--privacy-ip-max-ttl", "2w", sampleLimits}, `flag --privacy-ip-max-ttl: "2w" is not a duration: its units are h, m and s, and a day is 24h; write 336h; `},
	{[]string{"limits", "lint", "--privacy-ip-max-ttl", "8", sampleLimits}, `flag --privacy-ip-max-ttl: "8" is not a duration; write it with a unit, for example 1h; `},
	{[]string{"drill", "fail-open", "--rate", "1k"}, `flag --rate: "1k" is not a whole number; write it in digits only, for example 1000; `},
	{[]string{"bypass", "key", "--id", "a b", "new.pem", "new.json"}, "bypass key: --id must be an id of 1 to 64 letters, digits, '-', '_', '.' and ':'; "},
	{[]string{"bypass", "key", "--id", "x", "new.pem", sampleLimits}, "read JWKS: " + sampleLimits + ` is not JSON of the form {"keys": [...]}: name a JWKS that limitgate bypass key has made, or a new file`},
	{[]string{"bypass", "key", "--id", "x", "new.pem", "../../docs/openapi.json"}, `openapi.json is not JSON of the form {"keys": [...]}: `},
}

// TestCommandMistakes: each mistake in the arguments or files of a command that serves no clients gets an
// error that says what is wrong and what would be right.
func TestCommandMistakes(t *testing.T) {
	folder := t.TempDir()
	noPlan := filepath.Join(folder, "no_plan.yaml")
	if err := os.WriteFile(noPlan, []byte("version: 1\ndefault_plan: gold\nplans: {free: [], partner: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) (path string) {
		path = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	zipped, open := write("access.log.gz", "\x1f\x8b\x08"), write("nginx.conf", "server {\nlocation /v1/ {\n")
	users := write("users", "user a on >x\nuser on\n")
	cert, key := redistest.NewAuthority(t).Issue("localhost", time.Now().Add(time.Hour))
	heavy := t.TempDir()
	if err := os.WriteFile(filepath.Join(heavy, "big.a"), make([]byte, 11<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range slices.Concat(argumentMistakes, []commandMistake{
		{[]string{"limits", "lint", noPlan}, `no_plan.yaml:2: default_plan: there is no plan "gold": the plans are free, partner`},
		{[]string{"replay", "--limits", zipped, sampleLimits}, "access.log.gz\" is a gzip file, and limits are text: limits are named by --limits, and a log is the last argument of limitgate replay"},
		{[]string{"limits", "lint", zipped}, "is a gzip file, and limits are text"},
		{[]string{"limits", "import", "nginx", open}, "line 2: the block \"location /v1/\" does not end: write } behind it"},
		{[]string{"serve", "--listen=127.0.0.1:0", "--admin=", "--users", users}, "limitgate: read users: " + users + ":1: user \"a\": a file holds hashes and no passwords: limitgate hash-password makes a hash\n" + users + ":2: "},
		{[]string{"serve", "--listen=127.0.0.1:0", "--admin=", "--tls-cert", cert, "--tls-key", cert}, "it holds a certificate, and no private key"},
		{[]string{"serve", "--listen=127.0.0.1:0", "--admin=", "--tls-cert", key, "--tls-key", key}, "it holds a private key, and no certificate"},
		{[]string{"serve", "--listen=127.0.0.1:0", "--admin=", "--tls-cert", key, "--tls-key", cert}, "the first holds the key and the second the certificate: swap them"},
		{[]string{"serve", "--listen=127.0.0.1:0", "--admin=", "--users", noPlan}, "no_plan.yaml\" is a limits file: a file of users has a line for each, such as user acme"},
		{[]string{"limits", "suggest", zipped}, zipped + "\": read access log: read log: the data ends in the middle, the file is probably not complete: "},
		{[]string{"replay", "--limits", sampleLimits, zipped}, zipped + "\": read access log: read log: "},
		{[]string{"limits", "suggest", folder}, "read access log: read log: \"" + folder + "\" is a folder: name a file"},
		{[]string{"limits", "import", "nginx", folder}, "limits import: \"" + folder + "\" is a folder: name a file; nginx -T prints all files: nginx -T > nginx.txt && limitgate limits import nginx nginx.txt\n"},
		{[]string{"limits", "import", "kong", folder}, "\" is a folder: name a file\n"},
		{[]string{"limits", "import", "nginx", write("a.js", "const rateLimit = require('express-rate-limit')\nx(3)\n")}, "a.js: it is the source code of a program: limits in code are moved by hand, see docs/moving\n"},
		{[]string{"limits", "import", "nginx", write("none.conf", "server { listen 80; }")}, "none.conf:1: there is no limit_req\nno limit is imported, so there is no limits file\n"},
		{[]string{"limits", "lint", "../../examples"}, "limitgate: ../../examples is a folder, which is read as Envoy's limits, and has none: "},
		{[]string{"limits", "lint", "../../examples"}, "../../examples/limits.yaml is a limits file (limitgate limits lint ../../examples/limits.yaml)"},
		{[]string{"limits", "import", "envoy", "../../examples"}, "../../examples/kong.yaml is a configuration of Kong (limitgate limits import kong ../../examples/kong.yaml)"},
		{[]string{"limits", "import", "kong", zipped}, "access.log.gz\" is a gzip file: unpack it first"},
		{[]string{"limits", "import", "kong", write("kong.json", "{\"plugins\": [")}, "kong.json: line 1: not readable as YAML: the [ is not closed: write ]"},
		{[]string{"limits", "import", "kong", write("tie.yaml", "plugins: [{name: rate-limiting, config: {second: 1}}, {name: rate-limiting, config: {second: 2}}]")}, "tie.yaml:1: a plugin is not imported: the plugin on line 1 is of the same entities, and Kong refuses two\n"},
		{[]string{"limits", "import", "nginx", write("many.conf", manyZones(65))}, "the limits file, which is on standard output, cannot be used as it is:\nstandard output:1: max_levels: one request could meet 65 "},
		{[]string{"bypass", "key", "--id", "x", noPlan, filepath.Join(folder, "new.json")}, "write key: \"" + noPlan + "\" exists already: name a new file"},
		{[]string{"limits", "lint", heavy}, heavy + " is a folder, and a folder of Envoy's limits has YAML files alone; a limits file is one file (read folder: "},
	}) {
		if _, errs, code := command(row.args...); code == exitOK || !strings.Contains(errs, row.want) {
			t.Errorf("%.100s: exit %d, without %q:\n%s", row.args, code, row.want, errs)
		}
	}
}

// TestNoPermission: root, who may run the tests, has all rights.
func TestNoPermission(t *testing.T) {
	err := fmt.Errorf("read limits: %w", &fs.PathError{Op: "open", Path: "a.yaml", Err: syscall.EACCES})
	const want = "read limits: open a.yaml: permission denied (this user may not open it: change the mode or the owner of the file, or of its folder)"
	if got := new(environment).withFlag(err); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestRequestWarnings: a dimension that no limit of the tenant uses, and words in the wrong order, are reported
// beside the explanation.
func TestRequestWarnings(t *testing.T) {
	const sampleLimits = "../../examples/limits.yaml"
	for _, row := range []struct{ name, want string }{
		{"usr", "limitgate limits explain: no limit of tenant \"acme\" uses the dimension \"usr\"; did you mean user? (warning)\n"},
		{"region", "limitgate limits explain: no limit of tenant \"acme\" uses the dimension \"region\" (warning)\n"},
		{"user", ""},
	} {
		out, errs, code := command("limits", "explain", sampleLimits, "acme", "-", "-", "1", "DIM", row.name, "u1")
		if code != exitOK || errs != row.want || !strings.Contains(out, "tenant acme, plan ") {
			t.Errorf("%s: exit %d: %s", row.name, code, errs)
		}
	}
	const swapped = "limitgate limits explain: the tenant is a route, and the op is no route: the order is tenant op ip (warning)\n"
	if _, errs, code := command("limits", "explain", sampleLimits, "POST /v1/payments", "acme", "203.0.113.7"); code != exitOK || errs != swapped {
		t.Errorf("a tenant and an op that are swapped: exit %d: %s", code, errs)
	}
	const address = "limitgate limits explain: the tenant is an address, and there is no ip: the order is tenant op ip (warning)\n"
	if _, errs, code := command("limits", "explain", sampleLimits, "203.0.113.7", "POST /v1/payments", "-"); code != exitOK || errs != address {
		t.Errorf("an address as the tenant: exit %d: %s", code, errs)
	}
	const missing = "limitgate limits explain: the op is an address, and there is no ip: the order is tenant op ip, with - for no op (warning)\n"
	if _, errs, code := command("limits", "explain", sampleLimits, "acme", "203.0.113.7", "-"); code != exitOK || errs != missing {
		t.Errorf("an address as the op: exit %d: %s", code, errs)
	}
	const capital = "limitgate limits explain: tenant \"Acme\" is not listed; did you mean \"acme\", which has limits of its own? (warning)\n"
	if _, errs, code := command("limits", "explain", sampleLimits, "Acme", "-", "203.0.113.7"); code != exitOK || errs != capital {
		t.Errorf("a tenant in capitals: exit %d: %s", code, errs)
	}
	const spelled = `limits take the op "post /v1/payments" for another one than "POST /v1/payments": its method is in small letters`
	if _, errs, code := command("limits", "explain", sampleLimits, "acme", "post /v1/payments", "203.0.113.7"); code != exitOK || errs != "limitgate limits explain: "+spelled+" (warning)\n" {
		t.Errorf("an op in small letters: exit %d: %s", code, errs)
	}
}

// TestHelpOfLimits: the help of a command of limits is about that one.
func TestHelpOfLimits(t *testing.T) {
	for _, c := range limitsCommands() {
		out, _, code := command("limits", c.name, "--help")
		if code != exitOK || !strings.Contains(out, "limitgate limits "+c.name+" ") {
			t.Errorf("%s: exit %d:\n%s", c.name, code, out)
		}
		for _, other := range limitsCommands() {
			if other.name != c.name && strings.Contains(out, "\tlimitgate limits "+other.name+" ") {
				t.Errorf("the help of %s has %s", c.name, other.name)
			}
		}
	}
}

// manyZones returns a configuration of nginx that counts each request by n zones.
func manyZones(n int) string {
	zones, server := "", ""
	for i := range n {
		zones += fmt.Sprintf("limit_req_zone $uri zone=z%d:1m rate=9r/s;\n", i)
		server += fmt.Sprintf("limit_req zone=z%d; ", i)
	}
	return zones + "server { " + server + "}"
}

// TestMissingFileOfVariable checks that the error of a file that does not exist names the variable of the environment.
func TestMissingFileOfVariable(t *testing.T) {
	var out bytes.Buffer
	env := &environment{stdin: strings.NewReader(""), stdout: &out, stderr: &out, environ: []string{"OTHER=nope.yaml", "LIMITGATE_LIMITS=nope.yaml"}}
	if code := execute(t.Context(), env, []string{"serve", "--listen", "127.0.0.1:0", "--admin", ""}); code == 0 {
		t.Error("serve runs without its limits")
	}
	if want := `read limits: there is no file "nope.yaml", by LIMITGATE_LIMITS of the environment`; !strings.Contains(out.String(), want) {
		t.Errorf("%s, want %s", out.String(), want)
	}
	env.environ = append(env.environ, "LIMITGATE_USERS=nope.yaml")
	if name := env.variableOf("nope.yaml"); name != "" {
		t.Errorf("of two variables it is %s", name)
	}
}

// TestAddrOfVariable: the mistake in an address of the environment names the variable, and one of the flag the flag.
func TestAddrOfVariable(t *testing.T) {
	for args, want := range map[string]string{
		"check acme - -":              `check: env LIMITGATE_LISTEN: "31401" is a port without its host: write HOST:PORT, for example 127.0.0.1:31401`,
		"top":                         `top: env LIMITGATE_LISTEN: "31401" is a port without its host`,
		"check acme - - --addr 31402": `check: --addr "31402" is a port without its host`,
	} {
		var out bytes.Buffer
		env := &environment{stdin: strings.NewReader(""), stdout: &out, stderr: &out, environ: []string{"LIMITGATE_LISTEN=31401"}}
		if code := execute(t.Context(), env, strings.Fields(args)); code != exitUsage || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit %d: %s, want %s", args, code, out.String(), want)
		}
	}
}
