#!/bin/sh
# Ends the service before its files are removed. An upgrade restarts it later.
set -e
[ "$1" = remove ] && [ -d /run/systemd/system ] || exit 0
systemctl disable --now limitgate.service
