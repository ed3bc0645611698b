#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now platform-server.service || true # such as a masked one: it must be possible to remove the package
fi
