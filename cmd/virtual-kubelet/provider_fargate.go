// SPDX-License-Identifier: Apache-2.0

//go:build !no_fargate

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/fargate"

func init() { builtIn = append(builtIn, fargate.Provider) }
