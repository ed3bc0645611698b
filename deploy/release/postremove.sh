#!/bin/sh
# The data of the node in /var/lib/platform stays, also when the package is purged.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ] && [ -d /var/lib/platform ]; then
	echo "The data of the node remains in /var/lib/platform."
fi
