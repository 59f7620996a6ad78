// SPDX-License-Identifier: Apache-2.0

//go:build !no_huaweicci

package main

import "github.com/virtual-kubelet/virtual-kubelet/providers/huaweicci"

func init() { builtIn = append(builtIn, huaweicci.Provider) }
