// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/virtual-kubelet/virtual-kubelet/cmd/virtual-kubelet/internal/demo"
)

func init() { more = append(more, func() *cobra.Command { return demo.Command(buildVersion) }) }
