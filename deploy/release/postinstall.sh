#!/bin/sh
# An upgrade restarts the service if it runs. A new installation does not start it: a node
# that starts without configuration creates a cluster.
set -e
if [ "$1" = configure ] && [ -z "$2" ] && [ -f /etc/platform/platform.toml ]; then
	# It may get passwords, which only the server needs. An upgrade keeps the mode.
	chgrp "$(id -g platform-server)" /etc/platform/platform.toml
	chmod 640 /etc/platform/platform.toml
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ "$1" = configure ] && [ -n "$2" ]; then
		systemctl try-restart platform-server.service
	fi
fi
if [ "$1" = configure ] && [ -z "$2" ]; then
	echo "Edit /etc/platform/platform.toml, then start the node: systemctl enable --now platform-server"
fi
