// SPDX-License-Identifier: Apache-2.0

//go:build !no_nomad

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/nomad"

func init() { builtIn = append(builtIn, nomad.Provider) }
