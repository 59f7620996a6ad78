// SPDX-License-Identifier: Apache-2.0

//go:build !no_eci

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/eci"

func init() { builtIn = append(builtIn, eci.Provider) }
