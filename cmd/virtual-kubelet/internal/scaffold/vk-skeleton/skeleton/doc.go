// SPDX-License-Identifier: Apache-2.0

// Package skeleton runs pods on skeleton: a pod is a group of containers there.
//
// It keeps nothing: every answer comes from one list of the service, so a restart finds each pod as it is, and an error of the
// service is never an empty list.
//
// What surprises: as it was generated, the service is in memory (memory.go), and its pods end with the program.
package skeleton
