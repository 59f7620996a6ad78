// SPDX-License-Identifier: Apache-2.0

package probe

import "github.com/virtual-kubelet/virtual-kubelet/providerkit/probing"

// What is told to a Prober, and by it; see package probing.
type (
	// Config is what a Prober is made from.
	Config = probing.Config
	// Target is a container that runs or has run.
	Target = probing.Target
	// Result is what is known of a container.
	Result = probing.Result
	// Kind is one of the three kinds of probe.
	Kind = probing.Kind
	// PodNetwork is a network of pods that the machine itself is not in.
	PodNetwork = probing.PodNetwork
)

// The kinds of probe.
const (
	Startup   = probing.Startup
	Liveness  = probing.Liveness
	Readiness = probing.Readiness
)
