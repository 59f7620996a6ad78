// SPDX-License-Identifier: Apache-2.0

// Package zun is a provider that runs pods as containers of OpenStack Zun, by its API with microversion 1.40.
//
// The guarantee: a pod is one container, and one that has ended is started again by the node, with the back-off, the count and the exit code that the
// API wants. What a pod asks for and Zun cannot do is refused with its field. An exit code that Zun does not tell is unknown.
//
// What surprises: lists of Zun do not tell that a container has ended until Zun looks by itself, each minute. So the provider asks for single
// containers beside the lists, as often as the configuration allows. And pods of several containers are capsules, which current clouds
// cannot run.
package zun
