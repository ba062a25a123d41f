#!/usr/bin/env bash
# Runs all tests under the race detector with the seeds of every fuzz target, and the
# integration tests against real servers; make lint has vet. Prints a line for each package,
# and in the end the failures, with the commands that run them again. Tests of AWS are left
# out where the machine has no emulator and none can be fetched, unless LIMITGATE_ALL is 1.
# Any other skipped test is a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Without cgo, as the binary is released and as the linters compile, so that packages are compiled
# once for all of them. The race detector needs cgo.
export CGO_ENABLED=0

budget=900 # seconds, on two quiet cores
results=.cache/test
failed=
times=
left= # out, a line for each

# part runs a command, goes on when it fails, and records its duration.
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
	LIMITGATE_PROMTOOL=$(scripts/provision.sh promtool) || return 1
	export LIMITGATE_PROMTOOL
	emulators
}

# emulators gets the emulators of AWS, if it can.
emulators() {
	unset LIMITGATE_WITHOUT_AWS
	if [ -z "${LIMITGATE_MOTO:-}" ]; then
		if ! get aws; then
			may_lack_it || return 1
			LIMITGATE_WITHOUT_AWS=$(reason)
			export LIMITGATE_WITHOUT_AWS
			return
		fi
		LIMITGATE_MOTO=$(<"$results/folder")/moto_server
		export LIMITGATE_MOTO
	fi
	if get dynamodb; then
		LIMITGATE_DYNAMODB=$(<"$results/folder")
		export LIMITGATE_DYNAMODB
	else
		may_lack_it || return 1
		unset LIMITGATE_DYNAMODB
		left="left out: DynamoDB Local ($(reason)): tests of concurrency have moto's tables, one request at a time"$'\n'
	fi
}

# get writes the folder that provision.sh prints into one file, and its messages into
# another.
get() { scripts/provision.sh "$1" 2>&1 >"$results/folder" | tee "$results/provision.log" >&2; }

may_lack_it() { [ "${LIMITGATE_ALL:-}" != 1 ]; }

# reason prints a short form of the error of get.
reason() { tail -n 1 "$results/provision.log" | sed -e 's/^provision: //' -e 's/:.*//'; }

# check runs go test on packages. -C=FOLDER before the packages names another module, and
# go insists that it comes first. The race detector needs cgo. The test cache is off,
# because it does not know the servers. The linters vet all packages, and no debugger
# reads the binaries linked here. The timeout is for a test that hangs: on a busy machine the
# tests of cluster take ten minutes.
check() { CGO_ENABLED=1 "$results/testreport" run "$results" "$1" "${@:2}" -race -count=1 -timeout=20m -vet=off -ldflags=-w; }

# plain runs tests that do not suit the race detector: it makes pools drop objects, so
# that allocations cannot be counted, and simulations run one event after the other.
plain() {
	"$results/testreport" run "$results" simulations -count=1 -timeout=5m ./internal/simulation &&
		"$results/testreport" run "$results" allocations -count=1 -timeout=2m -run=TestAllocs ./integration
}

# deploy checks the files of deploy/kubernetes and deploy/ecs, without the race detector: the
# types of Kubernetes would be compiled once more for it.
deploy() { "$results/testreport" run "$results" deploy -C=deploy/checks -count=1 -timeout=5m -vet=off ./...; }

# fuzz searches for harmful input of clients for a short time: framing, the commands that
# decide, and all others, at once. `make fuzz` searches longer, in more targets. Each package is
# compiled before, as targets that begin at once compile all packages for themselves.
fuzz() {
	local target running=() status=0
	go test -c -fuzz '^FuzzGuard$' -o "$results/fuzz.test" ./server || return 1
	go test -c -fuzz '^FuzzServe$' -o "$results/fuzz.test" ./commands || return 1
	for target in FuzzGuard FuzzDecisions FuzzServe; do
		FUZZTIME=10s scripts/fuzz.sh "$target" >"$results/$target.log" 2>&1 &
		running+=("$target=$!")
	done
	for target in "${running[@]}"; do
		if wait "${target#*=}"; then
			awk -v name="${target%=*}" '/execs:/ { execs = $5 } END { print name, execs, "inputs" }' "$results/${target%=*}.log"
		else
			tail -n 40 "$results/${target%=*}.log"
			status=1
		fi
	done
	return "$status"
}

rm -rf "$results"
mkdir -p "$results"
part provision provision
[ -z "$failed" ] || exit 1
go build -o "$results/testreport" ./internal/testreport
# Three at a time, the slow ones first: they wait much.
first='./cluster ./deploy/cloudformation ./internal/redistest ./controlplane/dynamo ./backstop'
packages=$(go list ./... | grep -v -e '/integration$' -e '/internal/simulation$')
# Word splitting is meant; a package that is named twice is tested once.
# shellcheck disable=SC2086
part packages check packages -p=3 $first $packages
part bench check bench -C=bench ./...
# These come last and alone: they measure time.
part integration check integration -parallel=6 ./integration
# It has the compiled packages of integration's binary.
part deploy deploy
part plain plain
part fuzz fuzz

printf '\n%s%-12s %4d s  of a budget of %d s\n' "$times" total "$SECONDS" "$budget"
if [ "$SECONDS" -gt "$budget" ]; then
	printf 'over the budget: on a quiet machine, look for the part that became slow\n'
fi
printf '\n%s' "$left"
"$results/testreport" close "$results" || failed="$failed "
if [ -n "$failed" ]; then
	printf 'FAILED:%s (full output in %s)\n' "$failed" "$results"
	exit 1
fi
