#!/usr/bin/env bash
# Runs every fuzz target of the repository sequentially and prints a table.
#
#   test/fuzz/run.sh [-t time] [-p workers] [-l] [target ...]
#
#   -t time      how long each target runs (default 60s)
#   -p workers   number of worker processes (default 2)
#   -l           only list the targets
#   target       run only targets whose "package Name" contains one of these texts
#
# The input of a crash is stored in testdata/fuzz of the target's package, where every
# later `go test` runs it. A target that finds no new inputs beyond the known ones gets
# four times the time. The exit status is 1 if a target crashed or did not run.
set -u
cd "$(dirname "$0")/../.."

time=60s workers=2 list=
while getopts 't:p:lh' option; do
	case $option in
	t) time=$OPTARG ;;
	p) workers=$OPTARG ;;
	l) list=1 ;;
	*) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2 ;;
	esac
done
shift $((OPTIND - 1))

# targets prints a package and a name a line.
targets() {
	grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . |
		sed -E 's|/[^/]*_test\.go:func | |' | sort -u
}

# chosen reports whether a target is asked for.
chosen() {
	local target=$1 text
	shift
	[ $# -eq 0 ] && return 0
	for text in "$@"; do
		[[ $target == *"$text"* ]] && return 0
	done
	return 1
}

# attempt fuzzes a target for some time, which may be several texts of durations in a
# row: Go adds them up. Shrinking an interesting input may take as long as finding a
# hundred others, so that it gets little.
attempt() {
	go test -run='^$' -fuzz="^$2\$" -fuzztime="$3" -fuzzminimizetime=1s -parallel="$workers" "$1" >"$log" 2>&1 </dev/null
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
row='%-28s %-22s %12s %16s %8s\n'
failed=0
# shellcheck disable=SC2059
[ -n "$list" ] || printf "$row" package target executions 'new interesting' crashes
while read -r package name; do
	chosen "$package $name" "$@" || continue
	if [ -n "$list" ]; then
		echo "$package $name"
		continue
	fi
	attempt "$package" "$name" "$time"
	status=$?
	if [ $status -eq 0 ] && ! grep -q 'execs: ' "$log"; then
		# The time was over before the known inputs had all been run.
		attempt "$package" "$name" "$time$time$time$time"
		status=$?
	fi
	last=$(grep -E 'execs: ' "$log" | tail -n 1)
	executions=$(sed -nE 's/.*execs: ([0-9]+).*/\1/p' <<<"$last")
	interesting=$(sed -nE 's/.*new interesting: ([0-9]+).*/\1/p' <<<"$last")
	crashes=0
	if [ $status -ne 0 ]; then
		crashes=$(grep -c 'Failing input written to' "$log")
		# On a busy machine the go command may fail because the time is over, just so.
		if [ "$crashes" -eq 0 ] && [ -n "$executions" ] && grep -q '^ *context deadline exceeded' "$log"; then
			status=0
		else
			failed=1
			[ "$crashes" -gt 0 ] || crashes=error
		fi
	elif [ -z "$executions" ]; then
		failed=1 crashes=unfuzzed # never a row that only looks like a success
	fi
	# shellcheck disable=SC2059
	printf "$row" "$package" "$name" "${executions:--}" "${interesting:--}" "$crashes"
	[ $status -eq 0 ] || sed 's/^/    /' "$log" | grep -vE 'fuzz: elapsed' | head -n 40
done < <(targets)
exit $failed
