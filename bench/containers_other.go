// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"context"
	"errors"
)

func startContainers(context.Context, *accounts, string) (containers, error) {
	return nil, errors.New("containers need Linux")
}

func removeCgroup(string) error { return nil }

func unmountBelow(string) error { return nil }
