#!/usr/bin/env bash
# Checks form and style. golangci-lint is built from source by go run, which the
# first time takes a minute or two.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# As scripts/test.sh, so that packages are compiled once for both.
export CGO_ENABLED=0

status=0
unformatted=$(find . -name '*.go' -not -path './.cache/*' -exec gofmt -l {} +)
if [ -n "$unformatted" ]; then
	printf 'not formatted, run make fmt:\n%s\n' "$unformatted" >&2
	status=1
fi
for script in scripts/*.sh deploy/systemd/*.sh .ci/run; do
	bash -n "$script" || status=1
done
# A cache of this checkout's own: its entries name files by their paths, and a shared
# cache reports files of checkouts that are gone.
export GOLANGCI_LINT_CACHE="$PWD/.cache/golangci-lint"
go run "$GOLANGCI_LINT" run ./... || status=1
# The files of other targets are compiled too, so that they stay right between two runs of these.
go vet -tags long,clients,gateways ./... || status=1
go vet -C deploy/checks -tags helm ./... || status=1
# These are modules of their own. Their configuration is that of the root.
for module in bench deploy/checks; do
	(cd "$module" && go run "$GOLANGCI_LINT" run ./...) || status=1
done
# Without cfn-lint, its script exits with 69 and prints a message.
scripts/cfn_lint.sh || [ $? = 69 ] || status=1
go run ./scripts/licences || status=1
# Without the database of vulnerabilities, the script exits with 69 and prints a message.
scripts/vulncheck.sh || [ $? = 69 ] || status=1
exit "$status"
