// SPDX-License-Identifier: Apache-2.0

//go:build race

package providertest_test

const raceDetector = true
