#!/usr/bin/env bash
# Runs a Redis Cluster of three masters and three replicas on loopback, for the tour.
#
#   local_cluster.sh start         starts it, and returns when it is whole
#   local_cluster.sh kill TENANT   kills the master that has the buckets of a tenant
#   local_cluster.sh restart       starts the killed servers again, as replicas of those that took over, or empty if none did
#   local_cluster.sh stop          ends what is left of it
#
# TOUR_PORT is the first of its six ports, 7600 unless it is set. Its files are in .cache/tour,
# or in TOUR_FOLDER. start exits with 3 where a port is taken.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# usage prints how this script is called.
usage() { sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

case ${1:-} in
start | stop | kill | restart) ;;
-h | --help | help)
	usage
	exit
	;;
*)
	[ -z "${1:-}" ] || printf 'there is no command %.40s\n\n' "$1" >&2
	usage >&2
	exit 64
	;;
esac

first=${TOUR_PORT:-7600}
if ! [[ $first =~ ^[0-9]+$ ]] || [ "$first" -lt 1024 ] || [ "$first" -gt 55000 ]; then
	printf 'TOUR_PORT=%s is no port from 1024 to 55000\n' "$first" >&2
	exit 64
fi
folder=${TOUR_FOLDER:-.cache/tour}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
ports=$(seq "$first" $((first + 5)))

# ask asks the server of a port, for two seconds at most.
ask() {
	local port=$1
	shift
	timeout 2 redis-cli -p "$port" "$@" 2>/dev/null
}

# own succeeds when this script started the server of a port, in this folder.
own() {
	local file=$folder/$1.pid pid
	[ -s "$file" ] || return 1
	pid=$(cat "$file")
	ask "$1" INFO server | grep -q "^process_id:$pid[^0-9]*\$" || ps -o args= -p "$pid" 2>/dev/null | grep -q "redis-server.*:$1"
}

# taken succeeds when a server listens on a port, whether it answers or not.
taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# end ends the server of a port with a signal, if this script started it, and waits for its end.
end() {
	local file=$folder/$2.pid pid
	if own "$2"; then
		pid=$(cat "$file")
		kill -"$1" "$pid" 2>/dev/null || true
		for _ in $(seq 50); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
	fi
	rm -f "$file" # if it is another's, the server has ended, and the number may be that of another process
}

# whole succeeds when all hash slots are served and each master has its replica.
whole() {
	local port
	for port in $ports; do
		ask "$port" CLUSTER INFO | grep -q '^cluster_state:ok' || return 1
		[ "$(ask "$port" CLUSTER NODES | grep -c ' connected')" -ge 6 ] || return 1
		ask "$port" INFO replication | grep -Eq '^(connected_slaves:1|master_link_status:up)' || return 1
	done
}

# undo prints why servers are not part of the cluster, ends them, and exits.
undo() {
	local port
	printf '%s\n' "$1" >&2
	for port in $2; do end TERM "$port"; done
	exit 1
}

# give_up prints why the cluster did not start, ends all its servers, and exits.
give_up() { undo "$1" "$ports"; }

# launch starts the server of a port in the background.
launch() {
	redis-server --port "$1" --bind 127.0.0.1 --daemonize yes --dir "$folder" --pidfile "$folder/$1.pid" \
		--logfile "$1.log" --dbfilename "$1.rdb" --save '' --cluster-enabled yes --cluster-config-file "$1.conf" \
		--cluster-node-timeout 1000 --cluster-require-full-coverage no >/dev/null
}

# answers succeeds when the server of a port answers within 10 seconds.
answers() {
	local until=$((SECONDS + 10))
	while [ "$SECONDS" -lt "$until" ]; do
		ask "$1" PING >/dev/null && return
		sleep 0.1
	done
	return 1
}

# unanswered prints that the server of a port does not answer.
unanswered() {
	printf 'the server on port %s does not answer; the end of %s: %s' "$1" "$folder/$1.log" "$(tail -n 1 "$folder/$1.log")"
}

# await_whole succeeds when the cluster is whole within half a minute.
await_whole() {
	local until=$((SECONDS + 30))
	while [ "$SECONDS" -lt "$until" ]; do
		whole && return
		sleep 0.1
	done
	return 1
}

start() {
	local port busy nodes=()
	if [ "$first" -gt 55529 ]; then
		printf 'TOUR_PORT is %s: a cluster needs ports 10,000 above, so at most 55529\n' "$first" >&2
		exit 64
	fi
	for port in $ports; do
		for busy in "$port" $((port + 10000)); do
			if taken "$busy"; then
				if own "$port"; then
					printf 'the cluster runs already, from port %s: local_cluster.sh stop ends it\n' "$first" >&2
					exit 3
				fi
				printf 'another server listens on port %s: end it, or set TOUR_PORT\n' "$busy" >&2
				exit 3
			fi
		done
	done
	for port in $ports; do
		rm -f "$folder/$port.conf" "$folder/$port.rdb" # of a cluster before
		launch "$port"
		nodes+=("127.0.0.1:$port")
	done
	for port in $ports; do
		answers "$port" || give_up "$(unanswered "$port"). Another process may use port $port or $((port + 10000)): set TOUR_PORT to others"
	done
	if ! timeout 60 redis-cli --cluster create "${nodes[@]}" --cluster-replicas 1 --cluster-yes >"$folder/create.log" 2>&1; then
		give_up "redis-cli --cluster create failed: $(tail -n 1 "$folder/create.log"): see $folder/create.log"
	fi
	await_whole || give_up "the cluster is not whole after half a minute: see $folder"
	printf 'three masters and three replicas on 127.0.0.1, from port %s\n' "$first"
}

restart() {
	local port down=
	for port in $ports; do
		if ! taken "$port"; then
			down="$down $port"
		elif ! own "$port"; then
			printf 'the server on port %s is none of %s: set TOUR_FOLDER or TOUR_PORT to those of the cluster, or end it\n' "$port" "$folder" >&2
			exit 1
		fi
	done
	alive >/dev/null
	for port in $down; do launch "$port"; done
	for port in $ports; do
		answers "$port" || undo "$(unanswered "$port")" "$down"
	done
	await_whole || undo "the cluster is not whole after half a minute: see $folder" "$down"
	printf 'started%s: the cluster is whole\n' "${down:- none}"
}

# alive prints the first port whose server answers.
alive() {
	local port
	for port in $ports; do
		if ask "$port" PING >/dev/null; then
			printf '%s\n' "$port"
			return
		fi
	done
	printf 'no cluster answers on the ports from %s: local_cluster.sh start\n' "$first" >&2
	return 1
}

# owner prints the port of the master that has a hash slot, as the server of a port knows it.
owner() {
	ask "$2" CLUSTER NODES | awk -v slot="$1" '$3 ~ /master/ {
		for (i = 9; i <= NF; i++) {
			split($i, range, "-")
			if (range[1] <= slot && slot <= (range[2] == "" ? range[1] : range[2])) { split($2, at, "[:@]"); print at[2] }
		}
	}'
}

case ${1:-} in
start) start ;;
restart) restart ;;
kill)
	if [ -z "${2:-}" ]; then
		printf 'kill needs a tenant: local_cluster.sh kill acme\n' >&2
		exit 64
	fi
	from=$(alive)
	port=$(owner "$(ask "$from" CLUSTER KEYSLOT "{$2}")" "$from")
	if ! ask "$port" PING >/dev/null; then
		printf 'the master on port %s is dead already, and no replica of it has taken over\n' "$port" >&2
		exit 1
	fi
	end KILL "$port"
	if ask "$port" PING >/dev/null; then
		printf 'the master on port %s is left: its process is not the one of %s\n' "$port" "$folder/$port.pid" >&2
		exit 1
	fi
	printf 'killed the master on port %s, which has the buckets of %s\n' "$port" "$2"
	;;
stop) for port in $ports; do end TERM "$port"; done ;;
esac
