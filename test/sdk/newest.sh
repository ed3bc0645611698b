#!/bin/sh
# Reports the newest release of each SDK beside the one that the tests pin. It changes nothing:
# run `make sdk-versions`, then raise what is behind and run `make test-sdks`.
set -u
services=test/sdk/services
failed=unknown

report() { # name, pinned, newest
	state="behind"
	case $3 in
	"$2") state="current" ;;
	"" | "$failed") set -- "$1" "$2" "$failed"; state="the registry could not be asked" ;;
	esac
	printf '%-12s %-10s %-10s %s\n' "$1" "$2" "$3" "$state"
}

printf '%-12s %-10s %-10s\n' SDK PINNED NEWEST
report go "$(sed -n 's#.*restatedev/sdk-go v##p' go.mod)" \
	"$(${GO:-go} list -m -f '{{.Version}}' github.com/restatedev/sdk-go@latest 2>/dev/null | sed 's/^v//')"
report typescript "$(sed -n 's#.*restatedev/restate-sdk": "\(.*\)".*#\1#p' $services/ts/package.json)" \
	"$(npm view @restatedev/restate-sdk version 2>/dev/null)"
report python "$(sed -n 's#^restate-sdk==##p' $services/python/requirements.txt)" \
	"$(${PYTHON:-python3} -m pip index versions restate-sdk 2>/dev/null | sed -n '1s/.*(\(.*\)).*/\1/p')"
java=$(sed -n 's#.*<restate.version>\(.*\)</restate.version>.*#\1#p' $services/java/pom.xml)
report java "$java" "$(cd $services/java && mvn -B -Dproperty=restate.version \
	org.codehaus.mojo:versions-maven-plugin:2.19.1:display-property-updates 2>/dev/null |
	sed -n 's#.*{restate.version} .* \([0-9][0-9.]*\)$#\1#p')"
report rust "$(sed -n 's#^restate-sdk = "\(.*\)"#\1#p' $services/rust/Cargo.toml)" \
	"$(cargo info --color never restate-sdk 2>/dev/null | sed -n 's#^version: \([0-9.]*\).*#\1#p; s#.*(latest \([0-9.]*\)).*#\1#p' | tail -1)"
