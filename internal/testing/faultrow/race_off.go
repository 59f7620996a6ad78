// SPDX-License-Identifier: Apache-2.0

//go:build !race

package faultrow

// race says whether the race detector makes everything slow.
const race = false
