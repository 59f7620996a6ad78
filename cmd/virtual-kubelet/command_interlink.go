// SPDX-License-Identifier: Apache-2.0

//go:build !no_interlink

package main

import (
	"github.com/spf13/cobra"

	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/plugin"
)

func init() { more = append(more, func() *cobra.Command { return plugin.Command(providers()) }) }
