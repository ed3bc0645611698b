#!/bin/sh
# Creates the user of the service, which systemd then uses instead of a dynamic one.
set -e
if ! getent passwd platform-server >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/platform --no-create-home --shell /usr/sbin/nologin platform-server
fi
