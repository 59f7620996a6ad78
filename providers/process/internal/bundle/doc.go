// SPDX-License-Identifier: Apache-2.0

// Package bundle creates the configuration of a container for an OCI runtime.
//
// The guarantee: a container gets nothing of the machine except the contents of its [shim.Spec]. An unsupported
// spec is an error. Mounts are ordered by depth, so no mount hides another mount below it.
//
// Note: the limits of memory and CPU are not in the configuration. The daemon sets them in the cgroup,
// and passes the path of the cgroup to the runtime.
package bundle
