#!/usr/bin/env bash
# Runs the commands of docs/limits-as-data.md, one after the other, and shows them. Ends
# the processes that it started. DEMO_REPLACE is a sed script for the commands, for other
# ports.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

page=docs/limits-as-data.md
replace=${DEMO_REPLACE:-}
trap 'kill $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true; rm -f limits.snapshot changed.yaml' EXIT

# until_ready waits for a process that a command started in the background.
until_ready() {
	for _ in $(seq 100); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	printf 'not ready: %s\n' "$*" >&2
	exit 1
}

# free exits if another process already answers on the port of a server that is about to
# start.
free() {
	if "$@" >/dev/null 2>&1; then
		printf 'another process answers already: %s\nEnd it first.\n' "$*" >&2
		exit 1
	fi
}

emulator=(eval "$(sed "$replace" <<<'true <>/dev/tcp/127.0.0.1/5566')")
proxy=(eval "$(sed "$replace" <<<'bin/limitgate check --peek nobody - -')")

while IFS= read -r command <&3; do
	printf '\n$ %s\n' "$command"
	case $command in
	*moto_server*) free "${emulator[@]}" ;;
	*'limitgate serve'*) free "${proxy[@]}" ;;
	esac
	eval "$command"
	case $command in
	*moto_server*) until_ready "${emulator[@]}" ;;
	*'limitgate serve'*) until_ready "${proxy[@]}" ;;
	*'push --yes --actor'*) until_ready eval "$(sed "$replace" <<<'bin/limitgate check --peek acme - - | grep "of 20 left"')"
		until_ready eval "$(sed "$replace" <<<'bin/limitgate audit --bucket limits-audit acme | grep "version 2"')"
		;;
	*'limits rollback'*) until_ready eval "$(sed "$replace" <<<'bin/limitgate audit --bucket limits-audit acme | grep "version 3"')" ;;
	esac
done 3< <(sed -n '/^```console/,/^```$/ s/^\$ //p' "$page" | sed "$replace")
