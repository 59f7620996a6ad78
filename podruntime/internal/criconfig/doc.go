// SPDX-License-Identifier: Apache-2.0

// Package criconfig turns a pod and its containers into what a runtime is asked for: configurations of
// sandboxes and containers.
//
// The guarantee: the same pod always gives the same configuration, and it is that which a kubelet sends.
//
// What surprises: the labels and annotations written here are all that is known of a pod after a restart.
package criconfig
