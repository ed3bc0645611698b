#!/bin/sh
# Reports the newest release of each SDK beside the one that the tests pin, and the releases in between
# where the registry lists them. It changes nothing: run `make sdk-versions`, then raise what is behind
# and run `make test-sdks`. What clients have cached does not count as an answer of a registry.
set -u
services=test/sdk/services
none=$(mktemp -d) # an empty cache
trap 'rm -rf "$none"' EXIT

report() { # name, pinned, newest, all releases
	name=$1 pinned=$2 newest=$3 since=
	shift 3
	case $newest in
	"") newest=unknown state="the registry did not respond" ;;
	"$pinned") state="current" ;;
	*)
		state="behind"
		if [ "$(printf '%s\n' "$pinned" "$newest" | sort -V | tail -1)" = "$pinned" ]; then
			state="the pinned one is newer"
		elif [ $# -gt 0 ]; then
			since=$(printf '%s\n' "$pinned" "$@" | grep -E '^[0-9]+(\.[0-9]+)*$' | sort -Vu | sed "1,/^$(printf %s "$pinned" | sed 's/\./\\./g')\$/d" | paste -sd ' ' -)
			state="behind; released since: $since"
		fi
		;;
	esac
	printf '%-12s %-10s %-10s %s\n' "$name" "$pinned" "$newest" "$state"
}

printf '%-12s %-10s %-10s\n' SDK PINNED NEWEST
report go "$(sed -n 's#.*restatedev/sdk-go v##p' go.mod)" \
	"$(${GO:-go} list -m -f '{{.Version}}' github.com/restatedev/sdk-go@latest 2>/dev/null | sed 's/^v//')" \
	$(${GO:-go} list -m -versions github.com/restatedev/sdk-go 2>/dev/null | sed 's/^[^ ]*//; s/ v/ /g')
report typescript "$(sed -n 's#.*restatedev/restate-sdk": "\(.*\)".*#\1#p' $services/ts/package.json)" \
	"$(npm view --cache "$none" --fetch-retries 1 @restatedev/restate-sdk version 2>/dev/null)" \
	$(npm view --cache "$none" --fetch-retries 1 @restatedev/restate-sdk versions --json 2>/dev/null | tr -d '[]",')
python=$(${PYTHON:-python3} -m pip index versions --no-cache-dir restate-sdk 2>/dev/null)
report python "$(sed -n 's#^restate-sdk==##p' $services/python/requirements.txt)" \
	"$(printf '%s\n' "$python" | sed -n '1s/.*(\(.*\)).*/\1/p')" \
	$(printf '%s\n' "$python" | sed -n 's/^Available versions: //p' | tr -d ,)
java=$(sed -n 's#.*<restate.version>\(.*\)</restate.version>.*#\1#p' $services/java/pom.xml)
# The plugin takes what is cached if the registry does not respond, with a warning.
report java "$java" "$(cd $services/java && mvn -B -U -Dproperty=restate.version \
	org.codehaus.mojo:versions-maven-plugin:2.19.1:display-property-updates 2>/dev/null |
	sed -n '/Could not transfer metadata/q; s#.*{restate.version} .* \([0-9][0-9.]*\)$#\1#p')"
report rust "$(sed -n 's#^restate-sdk = "\(.*\)"#\1#p' $services/rust/Cargo.toml)" \
	"$(cargo info --color never restate-sdk 2>/dev/null | sed -n 's#^version: \([0-9.]*\).*#\1#p; s#.*(latest \([0-9.]*\)).*#\1#p' | tail -1)"
