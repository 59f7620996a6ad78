// SPDX-License-Identifier: Apache-2.0

//go:build !no_plugin

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/plugin"

func init() { builtIn = append(builtIn, plugin.Provider) }
