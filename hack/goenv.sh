# SPDX-License-Identifier: Apache-2.0
#
# The flags of the Makefile, for scripts that are run by themselves: what several programs use is compiled once.
# Programs are for images without a C library, whatever calls this.
export GOFLAGS=${GOFLAGS:--trimpath} CGO_ENABLED=0
