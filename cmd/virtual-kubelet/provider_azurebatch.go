// SPDX-License-Identifier: Apache-2.0

//go:build !no_azurebatch

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/azurebatch"

func init() { builtIn = append(builtIn, azurebatch.Provider) }
