#!/bin/sh
# Checks a release for this architecture in bin/release: checksums, contents and unit of the Debian
# package, and that the server of the package serves as an unprivileged user. Nothing is installed.
# Run by make release-check; as root it uses the user nobody.
set -eu
cd bin/release
sha256sum --quiet -c SHA256SUMS
arch=$(dpkg --print-architecture)
package=$(ls platform_*_"$arch".deb)
dir=$(mktemp -d)
server=
cleanup() {
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
	fi
	rm -rf "$dir"
}
trap cleanup EXIT
dpkg -x "$package" "$dir/root"
for file in usr/bin/platform usr/bin/platform-server etc/platform/platform.toml usr/share/man/man1/platform.1.gz usr/share/man/man1/platform-server.1.gz \
	usr/share/bash-completion/completions/platform usr/share/doc/platform/copyright usr/share/doc/platform/sbom.cdx.json; do
	[ -s "$dir/root/$file" ] || { echo "missing in the package: $file"; exit 1; }
done
tar -tzf "$(ls platform-*-linux-"$arch".tar.gz)" >"$dir/names"
grep -q /bin/platform-server "$dir/names"
unit=$dir/root/usr/lib/systemd/system/platform-server.service
if command -v systemd-analyze >/dev/null; then
	sed "s#/usr/bin/#$dir/root/usr/bin/#" "$unit" >"$dir/platform-server.service"
	systemd-analyze verify "$dir/platform-server.service"
	systemd-analyze security --offline=true "$dir/platform-server.service" | tail -1
fi
bash -n "$dir/root/usr/share/bash-completion/completions/platform"

port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
mkdir "$dir/data"
set -- "$dir/root/usr/bin/platform-server" --config-file "$dir/root/etc/platform/platform.toml" --base-dir "$dir/data"
export PLATFORM_INGRESS__BIND_ADDRESS="127.0.0.1:$port" PLATFORM_ADMIN__BIND_ADDRESS="127.0.0.1:$((port + 1))" PLATFORM_BIND_ADDRESS="127.0.0.1:$((port + 2))"
if [ "$(id -u)" = 0 ]; then
	chmod 755 "$dir"
	chown nobody "$dir/data"
	set -- setpriv --reuid nobody --clear-groups --no-new-privs "$@"
fi
"$@" >"$dir/log" 2>&1 &
server=$!
tries=0
until "$dir/root/usr/bin/platform-server" health --config-file "$dir/root/etc/platform/platform.toml" >/dev/null 2>&1; do
	tries=$((tries + 1))
	if [ $tries -gt 300 ] || ! kill -0 "$server" 2>/dev/null; then
		cat "$dir/log"
		exit 1
	fi
	sleep 0.2
done
kill "$server"
wait "$server" || { cat "$dir/log"; exit 1; }
server=
echo "$package: contents, unit and start are correct"
