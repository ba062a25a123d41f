#!/usr/bin/env bash
# Runs the fuzz targets named, or every one, for FUZZTIME each, one after the other.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

found=0
while IFS=: read -r file target; do
	[ $# -eq 0 ] || [[ " $* " == *" $target "* ]] || continue
	found=$((found + 1))
	printf '== %s %s\n' "$(dirname "$file")" "$target"
	# The package's folder may belong to a module of its own.
	go test -C "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzzminimizetime 10x -fuzztime "${FUZZTIME:-30s}" </dev/null
done < <(find . -name '*_test.go' -not -path './.cache/*' -exec grep -o '^func Fuzz[A-Za-z0-9_]*' /dev/null {} + |
	sed -e 's|^\./||' -e 's/:func /:/' | sort)
printf '%d fuzz targets ran\n' "$found"
[ $# -eq 0 ] || [ "$found" -eq $# ]
