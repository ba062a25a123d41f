#!/usr/bin/env bash
# Checks the CloudFormation templates with cfn-lint: the one on PATH, else one installed
# into .cache/cfn-lint. Exits with 69 if it is missing and cannot be installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=1.51.0
venv=.cache/cfn-lint
lint=$(command -v cfn-lint) || lint=$venv/bin/cfn-lint
if ! "$lint" --version >/dev/null 2>&1; then
	lint=$venv/bin/cfn-lint
fi
if ! "$lint" --version >/dev/null 2>&1; then
	printf 'cfn-lint: installing version %s into %s\n' "$version" "$venv" >&2
	rm -rf "$venv"
	if ! { python3 -m venv "$venv" && "$venv/bin/pip" install -q "cfn-lint==$version"; } >&2; then
		printf 'cfn-lint: there is none, and it could not be installed: the templates were not checked\n' >&2
		exit 69
	fi
fi
"$lint" deploy/cloudformation/*.yaml internal/edge/testdata/{waf,cloudfront,usage_plans}*.yaml
