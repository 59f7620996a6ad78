// SPDX-License-Identifier: Apache-2.0

package probe

import "github.com/virtual-kubelet/virtual-kubelet/providerkit/probing"

// Input and output of a Prober: see package probing.
type (
	// Config is the configuration of a Prober.
	Config = probing.Config
	// Target is a container that is running or has run.
	Target = probing.Target
	// Result is the known state of a container.
	Result = probing.Result
	// Kind is one of the three kinds of probes.
	Kind = probing.Kind
	// PodNetwork is a network of pods that is not reachable from the machine itself.
	PodNetwork = probing.PodNetwork
)

// The kinds of probe.
const (
	Startup   = probing.Startup
	Liveness  = probing.Liveness
	Readiness = probing.Readiness
)
