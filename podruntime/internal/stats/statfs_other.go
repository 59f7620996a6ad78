// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package stats

import "errors"

func statFileSystem(string) (space, error) { return space{}, errors.ErrUnsupported }
