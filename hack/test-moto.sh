#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs provider fargate on moto, an emulator of AWS by others, for Secrets Manager and CloudWatch Logs, and its requests through botocore's own
# validator. Runs the driver ec2 of provider kip on moto's EC2. Both are packages of Debian 13, unpacked into a folder and not installed; it needs apt-get, dpkg-deb and Python 3.
#
#   MOTO_DIR=   folder that is kept; default: one that is removed
#
# Usage: hack/test-moto.sh [REPORT [REPORT-OF-EC2]]
set -euo pipefail

report=${1:+$(realpath -m "$1")}
ec2=${2:+$(realpath -m "$2")}
cd "$(dirname "$0")/.."
dir=${MOTO_DIR:-}
if [ -z "$dir" ]; then
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
fi
python=$dir/root/usr/lib/python3/dist-packages
if [ ! -e "$python/moto" ]; then
  mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial" "$dir/debs" "$dir/root"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" >"$dir/sources.list"
  cat >"$dir/apt.conf" <<CONF
Dir::State "$dir/state";
Dir::Cache "$dir/cache";
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "/dev/null";
CONF
  export APT_CONFIG=$dir/apt.conf
  apt-get -q update
  names=(moto botocore boto3 responses s3transfer flask flask-cors werkzeug itsdangerous click markupsafe jinja2 requests urllib3 certifi idna
    charset-normalizer xmltodict dateutil jmespath antlr4 blinker six yaml)
  (cd "$dir/debs" && apt-get -q download "${names[@]/#/python3-}")
  for deb in "$dir"/debs/*.deb; do dpkg-deb -x "$deb" "$dir/root"; done
fi
export PYTHONPATH=$python
port=$(. hack/demo.sh && free_port)
/usr/bin/python3 "$dir/root/usr/bin/moto_server" -H 127.0.0.1 -p "$port" >"$dir/moto.log" 2>&1 &
server=$!
trap 'kill "$server"; [ -n "${MOTO_DIR:-}" ] || rm -rf "$dir"' EXIT
until curl -fs -o /dev/null "http://127.0.0.1:$port/moto-api/"; do
  kill -0 "$server" || { cat "$dir/moto.log" >&2; exit 1; }
  sleep 0.2
done
cd providers
MOTO_URL=http://127.0.0.1:$port MOTO_REPORT=$report MOTO_REPORT_EC2=$ec2 go test -count=1 -run '^TestMoto$' -v ./fargate ./kip/internal/ec2
