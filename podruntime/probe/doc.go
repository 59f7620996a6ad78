// SPDX-License-Identifier: Apache-2.0

// Package probe asks containers how they are, by the startup, liveness and readiness probes of
// their pod, and runs their lifecycle hooks.
//
// The guarantee: at most one run of a probe is under way; it begins no earlier than its
// period and initial delay say, liveness and readiness wait for the startup probe, and what is learned of
// a container is kept under its ID until it is forgotten. No request leaves for an
// address that is link-local or serves a cloud's metadata, whatever the pod, its
// DNS names or a redirect say, unless the pod itself has that address.
//
// What surprises: a startup or liveness probe without initial delay runs one period after the
// container has started, so that a container has failureThreshold × periodSeconds before it is killed. A kubelet's
// first run is at any time within that period.
package probe
