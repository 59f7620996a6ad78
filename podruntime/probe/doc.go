// SPDX-License-Identifier: Apache-2.0

// Package probe runs the startup, liveness and readiness probes of containers, and their lifecycle hooks.
//
// The guarantee: at most one run of a probe is in progress. It begins no earlier than its period and initial delay allow, and liveness and readiness
// probes wait for the startup probe. The results of a container are kept under its ID until Forget. No request goes to a link-local address or to a
// cloud's metadata service, not even through the pod's settings, DNS names or redirects, unless the pod itself has that address.
//
// Note: a startup or liveness probe without initial delay first runs one period after the start of the container, so a container has
// failureThreshold × periodSeconds before it is killed. The first run of a kubelet is at a random time within that period.
package probe
