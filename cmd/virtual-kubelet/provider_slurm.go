// SPDX-License-Identifier: Apache-2.0

//go:build !no_slurm

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/slurm"

func init() { builtIn = append(builtIn, slurm.Provider) }
