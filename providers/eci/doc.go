// SPDX-License-Identifier: Apache-2.0

// Package eci is a provider that runs pods in Alibaba Cloud Elastic Container Instance, by its API of 2018-08-08, without an SDK.
//
// The guarantee: a pod is one container group, also when a create is asked again, and a restart of the provider writes nothing. What a
// pod asks for and a group cannot have is refused with its field. A list that failed is never an empty one, and an exit code that ECI does not tell
// is unknown.
//
// What surprises: the states of groups have no tags in them, so a group from before a restart is known by its name, which is the hash of its
// pod, or by a second request.
package eci
