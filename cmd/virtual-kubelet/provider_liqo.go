// SPDX-License-Identifier: Apache-2.0

//go:build !no_liqo

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/liqo"

func init() { builtIn = append(builtIn, liqo.Provider) }
