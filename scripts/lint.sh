#!/usr/bin/env bash
# Checks form and style. golangci-lint is built from source by go run, which the
# first time takes a minute or two.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
unformatted=$(find . -name '*.go' -not -path './.cache/*' -exec gofmt -l {} +)
if [ -n "$unformatted" ]; then
	printf 'not formatted, run make fmt:\n%s\n' "$unformatted" >&2
	status=1
fi
for script in scripts/*.sh .ci/run; do
	bash -n "$script" || status=1
done
# A cache of this checkout's own: what it keeps names files by their paths, and one
# that checkouts share reports files of those that are gone.
export GOLANGCI_LINT_CACHE="$PWD/.cache/golangci-lint"
go run "$GOLANGCI_LINT" run ./... || status=1
# Where there is no cfn-lint to be had, its script says so.
scripts/cfn_lint.sh || [ $? = 69 ] || status=1
exit "$status"
