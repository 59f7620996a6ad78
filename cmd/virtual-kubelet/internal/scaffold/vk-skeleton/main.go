// SPDX-License-Identifier: Apache-2.0

// Command vk-skeleton runs a virtual node with pods on skeleton. It has the flags of virtual-kubelet.
package main

import (
	"github.com/virtual-kubelet/virtual-kubelet/cli"

	"github.com/virtual-kubelet/virtual-kubelet/cmd/virtual-kubelet/internal/scaffold/vk-skeleton/skeleton"
)

func main() { cli.Main(skeleton.Provider()) }
