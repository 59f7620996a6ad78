#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds metrics-server from its module into a folder, and runs it on a node: kubectl top and a HorizontalPodAutoscaler.
#
#   METRICS_SERVER_VERSION=   default: v0.8.0
#   METRICS_SERVER=           a program that is there, in the place of a build
#
# Usage: hack/test-metrics-server.sh
set -euo pipefail

cd "$(dirname "$0")/.."
program=${METRICS_SERVER:-}
if [ -z "$program" ]; then
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
  GOBIN=$dir GOFLAGS=-trimpath CGO_ENABLED=0 go install "sigs.k8s.io/metrics-server/cmd/metrics-server@${METRICS_SERVER_VERSION:-v0.8.0}"
  program=$dir/metrics-server
fi
VK_REQUIRE_TESTAPI=1 VK_METRICS_SERVER=$program go test -count=1 -v -timeout 10m -run '^TestPublishedB4MetricsServer' ./test/integration
