// SPDX-License-Identifier: Apache-2.0

//go:build !no_tensilekube

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/tensilekube"

func init() { builtIn = append(builtIn, tensilekube.Provider) }
