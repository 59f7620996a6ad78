// SPDX-License-Identifier: Apache-2.0

package main

import "context"

// containers is the container runtime of all agents, one after the other.
type containers interface {
	Endpoint() string
	// Cgroup returns the control group in which pods are made.
	Cgroup() string
	// RemovePods removes the agents' remaining pods.
	RemovePods(context.Context) error
	// StartBare starts pods one after another by CRI alone and returns how many milliseconds each took.
	StartBare(ctx context.Context, pods int) ([]float64, error)
	// PID is the process of the runtime.
	PID() int
	Close() error
}

// appImage is the image of the pods.
const appImage = "example.com/app:1"
