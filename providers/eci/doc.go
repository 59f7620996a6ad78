// SPDX-License-Identifier: Apache-2.0

// Package eci is a provider that runs pods in Alibaba Cloud Elastic Container Instance, by its API of
// 2018-08-08, without an SDK.
//
// The guarantee: a pod is one container group, even after a repeated create, and a restart of the provider
// writes nothing. Everything in a pod that a group cannot have is refused with its field. A failed list is never
// an empty list, and an exit code that ECI does not report is unknown.
//
// The surprise: the states of groups have no tags. So the provider recognizes a group from before a restart by
// its name, which is the hash of its pod, or by a second request.
package eci
