// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import "errors"

func printSize([]string) error { return errors.ErrUnsupported }
