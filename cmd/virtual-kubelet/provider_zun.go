// SPDX-License-Identifier: Apache-2.0

//go:build !no_zun

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/zun"

func init() { builtIn = append(builtIn, zun.Provider) }
