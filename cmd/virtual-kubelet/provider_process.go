// SPDX-License-Identifier: Apache-2.0

//go:build !no_process

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/process"

func init() { builtIn = append(builtIn, process.Provider) }
