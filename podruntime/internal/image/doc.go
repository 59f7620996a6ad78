// SPDX-License-Identifier: Apache-2.0

// Package image makes images present on the runtime before containers start: by the pull policy, with the
// credentials of the pod, and with the delays and events of a kubelet.
package image
