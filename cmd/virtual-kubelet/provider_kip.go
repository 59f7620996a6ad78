// SPDX-License-Identifier: Apache-2.0

//go:build !no_kip

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/kip"

func init() { builtIn = append(builtIn, kip.Provider) }
