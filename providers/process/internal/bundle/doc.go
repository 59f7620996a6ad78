// SPDX-License-Identifier: Apache-2.0

// Package bundle writes what a runtime of the Open Container Initiative is told of a container.
//
// The guarantee: a container gets what its [shim.Spec] says and nothing of the machine besides; what the configuration cannot
// say is an error. Mounts are made in the order of their depth, so that none hides another that is below it.
//
// What surprises: the limits of memory and CPU are not here. The daemon keeps them in the control group, which
// it names to the runtime.
package bundle
