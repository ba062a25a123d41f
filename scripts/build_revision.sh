#!/usr/bin/env bash
# Builds the proxy of an earlier revision and prints the path of the binary.
#
#   build_revision.sh [REVISION]
#
# Without a revision it takes the newest tag before HEAD, or the first parent of HEAD
# where there is no tag. The checkout of the revision is removed afterwards. All messages
# go to stderr.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() {
	printf 'build_revision: %s\n' "$*" >&2
	exit 1
}

git rev-parse --git-dir >/dev/null 2>&1 || die "this is no git checkout, so it has no earlier revisions"
wanted=${1:-$(git describe --tags --abbrev=0 HEAD~1 2>/dev/null || echo HEAD~1)}
if ! commit=$(git rev-parse --verify --quiet "$wanted^{commit}"); then
	[ "$(git rev-parse --is-shallow-repository)" = false ] ||
		die "revision $wanted is not in this shallow clone: run git fetch --unshallow --tags"
	die "revision $wanted is not in this repository"
fi

folder=$PWD/.cache/upgrade
mkdir -p "$folder"
checkout=$(mktemp -d "$folder/checkout-XXXXXX")
trap 'git worktree remove --force "$checkout" 2>/dev/null || rm -rf "$checkout"' EXIT
git worktree add --quiet --detach "$checkout" "$commit" >&2
printf 'build_revision: building %s\n' "$(git log -1 --format='%h of %ci: %s' "$commit")" >&2
binary=$folder/limitgate-${commit:0:12}
(cd "$checkout" && CGO_ENABLED=0 go build -tags grpcnotrace -trimpath -buildvcs=false \
	-ldflags "-w -X main.version=${commit:0:12}" -o "$binary" ./cmd/limitgate) >&2
printf '%s\n' "$binary"
