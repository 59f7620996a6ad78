// SPDX-License-Identifier: Apache-2.0

// Package bundle writes the configuration of a container for a runtime of the Open Container Initiative.
//
// The guarantee: a container gets the contents of its [shim.Spec] and nothing else of the machine. A spec
// impossible in the configuration is an error. Mounts are made in the order of their depth, so no mount hides
// another mount below it.
//
// The surprise: the limits of memory and CPU are not here. The daemon keeps them in the control group, and gives
// the runtime the path of that group.
package bundle
