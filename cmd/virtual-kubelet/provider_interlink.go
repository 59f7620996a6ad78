// SPDX-License-Identifier: Apache-2.0

//go:build !no_interlink

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/interlink"

func init() { builtIn = append(builtIn, interlink.Provider) }
