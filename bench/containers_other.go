// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"context"
	"errors"
)

func startContainers(context.Context) (containers, error) {
	return nil, errors.New("containers need Linux")
}
