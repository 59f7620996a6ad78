// SPDX-License-Identifier: Apache-2.0

//go:build !no_aci

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/aci"

func init() { builtIn = append(builtIn, aci.Provider) }
