#!/usr/bin/env bash
# Runs everything that must pass: vet, all tests under the race detector with the
# seeds of every fuzz target, and the integration tests against real servers.
# Prints the wall time of each part. A skipped test is a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

budget=900 # seconds
logs=.cache/test
mkdir -p "$logs"
failed=
times=

# part runs a command, keeps going when it fails, and remembers how long it took.
part() {
	local name=$1 begin=$SECONDS status=ok
	shift
	printf '== %s\n' "$name"
	"$@" || {
		status=FAILED
		failed="$failed $name"
	}
	times="$times$(printf '%-12s %4d s  %s' "$name" $((SECONDS - begin)) "$status")"$'\n'
}

provision() {
	local folder
	scripts/provision.sh compiler || return 1
	folder=$(scripts/provision.sh redis) || return 1
	export LIMITGATE_REDIS_BIN=$folder
	"$folder/redis-server" --version
	if [ -z "${LIMITGATE_MOTO:-}" ]; then
		folder=$(scripts/provision.sh aws) || return 1
		export LIMITGATE_MOTO=$folder/moto_server
	fi
	# Nobody has to have it: the tests that ask for it say on what they ran.
	if folder=$(scripts/provision.sh dynamodb); then
		export LIMITGATE_DYNAMODB=$folder
		printf 'tables of the tests of concurrency: DynamoDB Local\n'
	else
		unset LIMITGATE_DYNAMODB
		printf 'tables of the tests of concurrency: moto\n'
	fi
}

# summarize reads the output of go test -v, prints one line per package, in full
# only what belongs to a failed package, and fails if a test was skipped.
summarize() {
	awk '
		/^[[:space:]]*--- SKIP: / { skipped[++skips] = $0 }
		/^(ok|\?)[[:space:]]/ { print; kept = ""; next }
		/^FAIL[[:space:]]/ { printf "%s%s\n", kept, $0; kept = ""; next }
		/^[[:space:]]*(=== (RUN|PAUSE|CONT|NAME)|--- PASS: )/ { next }
		{ kept = kept $0 "\n" }
		END {
			printf "%s", kept == "FAIL\n" ? "" : kept
			for (i = 1; i <= skips; i++) print "skipped, which counts as failed: " skipped[i]
			exit skips > 0
		}'
}

# check runs go test on packages. The race detector needs cgo. Nothing comes from
# the test cache: it knows no servers.
check() {
	local log=$logs/$1.log
	shift
	CGO_ENABLED=1 go test -race -count=1 -timeout=10m -v "$@" 2>&1 | tee "$log" | summarize
}

# allocations counts them without the race detector, which makes pools forget.
allocations() {
	go test -count=1 -timeout=2m -v -run 'TestAllocs' ./integration 2>&1 | tee "$logs/allocations.log" | summarize
}

# fuzz looks for two minutes for what clients could do harm with: framing, the commands
# that decide, and all others. `make fuzz` looks longer, and at more.
fuzz() {
	FUZZTIME=40s scripts/fuzz.sh FuzzGuard FuzzDecisions FuzzServe >"$logs/fuzz.log" 2>&1 ||
		{
			tail -40 "$logs/fuzz.log"
			return 1
		}
	awk '/^== /{ name = $3 } /execs:/ { execs[name] = $5 } END { for (name in execs) print name, execs[name], "inputs" }' "$logs/fuzz.log"
}

part provision provision
[ -z "$failed" ] || exit 1
part vet go vet ./...
packages=$(go list ./... | grep -v '/integration$')
# Word splitting is meant.
# shellcheck disable=SC2086
part packages check packages $packages
# These come last and alone: they measure time.
part integration check integration ./integration
part allocations allocations
part fuzz fuzz

printf '\n%s%-12s %4d s  of a budget of %d s\n' "$times" total "$SECONDS" "$budget"
if [ "$SECONDS" -gt "$budget" ]; then
	printf 'that is over the budget: on a quiet machine, look for what became slow\n'
fi
if [ -n "$failed" ]; then
	printf 'FAILED:%s (full output in %s)\n' "$failed" "$logs"
	exit 1
fi
