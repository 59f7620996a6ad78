// SPDX-License-Identifier: Apache-2.0

//go:build race

package faultrow

// race is true if the race detector makes everything slow.
const race = true
