// SPDX-License-Identifier: Apache-2.0

// Package zun is a provider that runs pods as containers of OpenStack Zun, by its API with microversion 1.40.
//
// The guarantee: a pod is one container. The node starts a container again that has ended, with the back-off,
// the count and the exit code of the Kubernetes API. Everything in a pod that Zun cannot do is refused with its
// field. An exit code that Zun does not report is unknown.
//
// The surprise: lists of Zun do not show that a container has ended until Zun itself looks, each minute. So the
// provider asks for single containers beside the lists, as often as the configuration allows. And pods with
// several containers are capsules, which current clouds cannot run.
package zun
