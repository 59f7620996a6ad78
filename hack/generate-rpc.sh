#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes what is generated from the protocol of plugins: Go beside it, Python for new plugins, to which examples/plugin-python has a link.
# It needs protoc 3.21, as Debian's protobuf-compiler has it: what another one writes for Python does not run with Debian's
# runtime. The plugins for Go are pinned in providerrpc/go.mod.
set -euo pipefail

cd "$(dirname "$0")/../providerrpc"
if [ "$(protoc --version 2>/dev/null | grep -o '3\.21')" != 3.21 ]; then
  echo "generate-rpc: protoc 3.21 is needed: apt-get install protobuf-compiler" >&2
  exit 1
fi
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
go build -o "$tools/" google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
proto=proto/virtualkubelet/provider/v1
PATH=$tools:$PATH protoc -I proto --go_out=proto --go_opt=paths=source_relative \
  --go-grpc_out=proto --go-grpc_opt=paths=source_relative virtualkubelet/provider/v1/provider.proto
protoc -I "$proto" --python_out="$tools" provider.proto
{ echo '# SPDX-License-Identifier: Apache-2.0'; cat "$tools/provider_pb2.py"; } >../cmd/virtual-kubelet/internal/scaffold/python/provider_pb2.py
