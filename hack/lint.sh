#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lints every module of the tree. The linter is built once from hack/tools (about two minutes of CPU) and kept
# in bin/ under its version. Arguments are folders of modules; without any, all modules are linted:
#
#   hack/lint.sh               every module
#   hack/lint.sh . providers   only these modules
#
# devcluster gets `go vet` instead: the linter would check the types of all of Kubernetes, from source. The flags are those
# of its build, so that nothing is compiled twice.
set -euo pipefail

cd "$(dirname "$0")/.."
root=$PWD
. hack/goenv.sh
tool=github.com/golangci/golangci-lint/v2
limit=15m # per module

version=$(go list -C hack/tools -m -f '{{.Version}}' "$tool")
linter=$root/bin/golangci-lint-$version
if [ ! -x "$linter" ]; then
  echo "build golangci-lint $version (once; one to five minutes)"
  mkdir -p bin
  go build -C hack/tools -o "$linter" "$tool/cmd/golangci-lint"
fi

if [ $# -eq 0 ]; then
  # Folders that the go command ignores hold no modules of ours; hack/tools, bench/kwok, bench/kubelet have no Go files.
  # test/conformance/programs and coredns have next to none, and compile all that they name.
  mapfile -t modules < <(find . -name '.?*' -prune -o -name testdata -prune -o -name go.mod -printf '%h\n' | grep -vx -e ./hack/tools -e ./bench/kwok -e ./bench/kubelet -e ./test/conformance/programs -e ./test/conformance/coredns | sort)
  set -- "${modules[@]}"
fi

failed=()
for module in "$@"; do
  echo "lint $module"
  case ${module#./} in
    devcluster) (cd "$module" && timeout "$limit" go vet "${quick_kubernetes[@]}" ./...) || failed+=("$module") ;;
    *) (cd "$module" && timeout "$limit" "$linter" run --config "$root/.golangci.yml" ./...) || failed+=("$module") ;;
  esac
done

if [ ${#failed[@]} -gt 0 ]; then
  echo "not clean: ${failed[*]}" >&2
  exit 1
fi
