#!/usr/bin/env bash
# Runs the commands of docs/limits-as-data.md, one after the other, and shows them. Ends
# the processes that it started. DEMO_EMULATOR_PORT, DEMO_PORT and DEMO_ADMIN_PORT are other
# ports than those of the page, and DEMO_REPLACE is a sed script for the commands.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

page=docs/limits-as-data.md
emulator_port=${DEMO_EMULATOR_PORT:-5566} port=${DEMO_PORT:-6380} admin_port=${DEMO_ADMIN_PORT:-9180}
trap 'kill $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true; rm -f limits.snapshot changed.yaml' EXIT

# mistake prints the reason why the demo cannot go on, and exits.
mistake() {
	printf 'make demo-aws: %s\n' "$1" >&2
	exit 1
}

# listening reports whether a process listens on a port.
listening() { (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# free exits if a process listens on port $2, which variable $1 sets, for the purpose $3.
free() {
	if listening "$2"; then
		mistake "port $2 is in use, and $3 needs it: end the process that listens there, or choose another port, such as make demo-aws $1=$(($2 > 50000 ? $2 - 10000 : $2 + 10000))"
	fi
}

# until_ready waits for a process that a command started in the background, named $1.
until_ready() {
	for _ in $(seq 100); do
		"${@:2}" >/dev/null 2>&1 && return
		sleep 0.1
	done
	mistake "$1 did not answer within 10 seconds"
}

for program in moto_server aws; do
	[[ $(type -P "$program") ]] || mistake "there is no $program in PATH: pip install 'moto[server]==5.2.1' awscli"
done
free DEMO_EMULATOR_PORT "$emulator_port" "the emulator of AWS"
free DEMO_PORT "$port" "the proxy of the demo"
free DEMO_ADMIN_PORT "$admin_port" "the page of the proxy"

printf 'Ports of this demo: %s for the emulator of AWS, %s for the proxy, %s for its page\n' "$emulator_port" "$port" "$admin_port"
replace="s/5566/$emulator_port/g"
if [[ $port != 6380 ]]; then
	replace+="; s|limitgate check|& --addr 127.0.0.1:$port|"
fi
if [[ $port != 6380 || $admin_port != 9180 ]]; then
	replace+="; s|limitgate serve|& --listen 127.0.0.1:$port --admin 127.0.0.1:$admin_port|"
fi
replace+="; ${DEMO_REPLACE:-}"

# run runs a command of the page on the ports of this demo.
run() { eval "$(sed "$replace" <<<"$1")"; }

while IFS= read -r command <&3; do
	printf '\n$ %s\n' "$command"
	eval "$command"
	case $command in
	*moto_server*) until_ready "the emulator of AWS" listening "$emulator_port" ;;
	*'limitgate serve'*) until_ready "limitgate serve" run 'bin/limitgate check --peek nobody - -' ;;
	*'push --yes --actor'*)
		until_ready "the proxy with the new limits" run 'bin/limitgate check --peek acme - - | grep "of 20 left"'
		until_ready "the audit of version 2" run 'bin/limitgate audit --bucket limits-audit acme | grep "version 2"'
		;;
	*'limits rollback'*) until_ready "the audit of version 3" run 'bin/limitgate audit --bucket limits-audit acme | grep "version 3"' ;;
	esac
done 3< <(sed -n '/^```console/,/^```$/ s/^\$ //p' "$page" | sed "$replace")
