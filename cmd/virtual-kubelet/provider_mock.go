// SPDX-License-Identifier: Apache-2.0

//go:build !no_mock

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/mock"

func init() { builtIn = append(builtIn, mock.Provider) }
