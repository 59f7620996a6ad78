#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the demo and a few commands of kubectl, and writes what a terminal shows as a picture for the README.
# Usage: hack/record.sh FILE.svg [BIN]     (BIN: the folder of virtual-kubelet and what its demo starts, bin by default)
set -euo pipefail

picture=${1:?usage: hack/record.sh FILE.svg [BIN]}
bin=$(realpath "${2:-$(dirname "${BASH_SOURCE[0]}")/../bin}")
place=$(mktemp -d)
mkfifo "$place/out"
"$bin/virtual-kubelet" demo --provider "${PROVIDER:-process}" >"$place/out" 2>&1 &
demo=$!
trap 'kill -INT $demo 2>/dev/null || true; wait $demo || true; rm -rf "$place"' EXIT

# A line of the screen is its second and its text.
screen=$place/screen
show() { printf '%s\t%s\n' "$1" "$2" >>"$screen"; }

show 0 "\$ ./virtual-kubelet demo --provider ${PROVIDER:-process}"
kubeconfig=
at=1
exec 3<"$place/out"
while IFS= read -r line <&3; do
  case $line in
    *KUBECONFIG=*) kubeconfig=${line#*KUBECONFIG=} ;;
    "✓ "*) show $at "$line"; at=$((at + 1)) ;;
    "Ctrl-C "*) show $at "$line"; break ;;
    Error*|*"demo: "*) echo "$line" >&2; cat <&3 >&2; exit 1 ;;
  esac
done
[ -n "$kubeconfig" ] || { echo "the demo ended before its pod ran" >&2; exit 1; }

# The commands are given to kubectl as a user gives them, in another terminal.
export KUBECONFIG=$kubeconfig
ln -s "$bin/devcluster" "$place/kubectl"
try() {
  at=$((at + 2))
  show $at ""
  show $at "\$ kubectl $*"
  "$place/kubectl" "$@" 2>&1 | while IFS= read -r line; do show $((at + 1)) "$line"; done
}
try get nodes
try get pods
try logs first --tail=3
try exec first -- hostname

awk -F '\t' '
  { at[NR] = $1; text[NR] = substr($2, 1, 92) }
  END {
    width = 800; height = NR * 20 + 56
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"A terminal: the demo starts a cluster, a node and a pod, and kubectl shows them\">\n", width, height
    print "<!-- hack/record.sh writes this picture from a run of the demo. -->"
    print "<style>"
    print "  text { font: 14px ui-monospace, Menlo, Consolas, \"DejaVu Sans Mono\", monospace; fill: #d5dbe3; white-space: pre }"
    print "  .c { fill: #ffffff; font-weight: bold } .d { fill: #7ee0a0 }"
    print "  @media (prefers-reduced-motion: no-preference) { text { opacity: 0; animation: in .2s forwards } }"
    print "  @keyframes in { to { opacity: 1 } }"
    print "</style>"
    printf "<rect width=\"%d\" height=\"%d\" rx=\"10\" fill=\"#1b212b\" stroke=\"#4a5568\"/>\n", width, height
    print "<circle cx=\"22\" cy=\"20\" r=\"6\" fill=\"#ff5f57\"/><circle cx=\"42\" cy=\"20\" r=\"6\" fill=\"#febc2e\"/><circle cx=\"62\" cy=\"20\" r=\"6\" fill=\"#28c840\"/>"
    for (i = 1; i <= NR; i++) {
      if (text[i] == "") continue
      line = text[i]; gsub(/&/, "\\&amp;", line); gsub(/</, "\\&lt;", line); gsub(/>/, "\\&gt;", line)
      class = ""
      if (line ~ /^\$ /) class = " class=\"c\""
      if (line ~ /^✓ /) class = " class=\"d\""
      printf "<text x=\"16\" y=\"%d\"%s style=\"animation-delay:%.1fs\" xml:space=\"preserve\">%s</text>\n", 36 + i * 20, class, at[i] * .5, line
    }
    print "</svg>"
  }' "$screen" >"$picture"
