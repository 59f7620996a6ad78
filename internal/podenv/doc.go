// SPDX-License-Identifier: Apache-2.0

// Package podenv gives the containers of a pod the environment, command and
// arguments that a kubelet would give them: values from ConfigMaps and Secrets,
// the downward API, service variables, and $(NAME) references.
//
// The guarantee: the same inputs give the same environment, in the same order,
// with every name once. Something mandatory that is missing makes the pod
// wait, with an event that says what for; something optional is left out only
// when the API server said that it does not exist, never because it could not be
// read. No value of a ConfigMap or Secret appears in an error or an event.
//
// # Variables that are not known yet
//
// A variable whose value only the backend learns keeps its ValueFrom: the
// addresses status.podIP and podIPs before they are in the status of the pod,
// hostIP and hostIPs before that when the node's are not known either, and a limit
// of a container without a limit when the allocatable resources of the node are not known. The provider fills such a
// variable when it starts the container, or refuses the pod. References to it, in
// later variables and in command and args, stay as they are written. This is
// what surprises: a resolved pod may still have a ValueFrom, of these two kinds.
package podenv
