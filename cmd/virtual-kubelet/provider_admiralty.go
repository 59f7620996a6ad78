// SPDX-License-Identifier: Apache-2.0

//go:build !no_admiralty

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/admiralty"

func init() { builtIn = append(builtIn, admiralty.Provider) }
