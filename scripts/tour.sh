#!/usr/bin/env bash
# Runs the commands of docs/tour.md, one after the other, with their sentences. It waits for Enter
# between them if standard input is a terminal, and ends all that it started. TOUR_PORT is the
# first of the six ports of the cluster, and TOUR_FOLDER the folder of its files. LIMITGATE_LISTEN
# and LIMITGATE_ADMIN are the addresses of the proxy. TOUR_REPLACE is a sed script for the commands.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${TOUR_FOLDER:-.cache/tour}
replace="s/7600/${TOUR_PORT:-7600}/g
s#\\.cache/tour#$folder#g
${TOUR_REPLACE:-}"
if [ -n "${LIMITGATE_LISTEN:-}" ]; then
	replace="$replace
s/limitgate \\(check\\|explain\\) /&--addr $LIMITGATE_LISTEN /g
s/-p 6380/-h ${LIMITGATE_LISTEN%:*} -p ${LIMITGATE_LISTEN##*:}/"
fi
begin='' end=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	begin=$'\e[1m' end=$'\e[0m'
fi
mkdir -p "$folder"
started=''
trap 'kill $(jobs -p) 2>/dev/null || true; [ -z "$started" ] || scripts/local_cluster.sh stop; wait 2>/dev/null || true' EXIT

for address in "${LIMITGATE_LISTEN:-127.0.0.1:6380}" "${LIMITGATE_ADMIN:-127.0.0.1:9180}"; do
	if (exec 3<>"/dev/tcp/${address%:*}/${address##*:}") 2>/dev/null; then
		printf 'another process listens on %s, where the proxy of the tour would: end it first\n' "$address" >&2
		exit 3
	fi
done

# until_ready waits for the result of a command that takes effect a moment later.
until_ready() {
	for _ in $(seq 200); do
		eval "$(sed "$replace" <<<"$1")" >/dev/null 2>&1 && return
		sleep 0.1
	done
	printf 'not ready: %s\n' "$1" >&2
	tail -3 "$folder/log" >&2 || true
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
	*'local_cluster.sh start'*)
		eval "$command"
		started=1
		continue
		;;
	*'limits reloaded'*) until_ready 'grep "limits reloaded" .cache/tour/log' ;;
	esac
	eval "$command" || [ $? -eq 2 ] # a denial, or a difference
	case $command in
	*'limitgate serve'*) until_ready 'bin/limitgate check --peek nobody - - | grep "source store"' ;;
	esac
done 3< <(sed -n '/^```/,/^```/!{/^[0-9]/p}; /^\$ /p' docs/tour.md | sed "/^\\$ /{$replace
}")
