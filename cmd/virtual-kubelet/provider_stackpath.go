// SPDX-License-Identifier: Apache-2.0

//go:build !no_stackpath

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/stackpath"

func init() { builtIn = append(builtIn, stackpath.Provider) }
