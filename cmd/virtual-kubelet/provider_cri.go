// SPDX-License-Identifier: Apache-2.0

//go:build !no_cri

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/cri"

func init() { builtIn = append(builtIn, cri.Provider) }
