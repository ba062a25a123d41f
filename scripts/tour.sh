#!/usr/bin/env bash
# Runs the commands of docs/tour.md, one after the other, with their sentences. It waits for Enter
# between them if standard input is a terminal, and ends all that it started. TOUR_REPLACE is a
# sed script for the commands, for other ports.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

replace=${TOUR_REPLACE:-}
begin='' end=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	begin=$'\e[1m' end=$'\e[0m'
fi
mkdir -p "${TOUR_FOLDER:-.cache/tour}"
trap 'kill $(jobs -p) 2>/dev/null || true; scripts/local_cluster.sh stop; wait 2>/dev/null || true' EXIT

# until_ready waits for the result of a command that takes effect a moment later.
until_ready() {
	for _ in $(seq 200); do
		eval "$(sed "$replace" <<<"$1")" >/dev/null 2>&1 && return
		sleep 0.1
	done
	printf 'not ready: %s\n' "$1" >&2
	exit 1
}

while IFS= read -r line <&3; do
	if [ "${line#\$ }" = "$line" ]; then
		printf '\n%s\n' "$line"
		continue
	fi
	command=${line#\$ }
	printf '\n%s$ %s%s\n' "$begin" "$command" "$end"
	if [ -t 0 ]; then
		read -rs
	fi
	case $command in
	*'limits reloaded'*) until_ready 'grep "limits reloaded" .cache/tour/log' ;;
	esac
	eval "$command" || [ $? -eq 2 ] # a denial, or a difference
	case $command in
	*'limitgate serve'*) until_ready 'bin/limitgate check --peek nobody - - | grep "source store"' ;;
	esac
done 3< <(sed -n '/^```/,/^```/!{/^[0-9]/p}; /^\$ /p' docs/tour.md | sed "/^\\$ /{$replace
}")
