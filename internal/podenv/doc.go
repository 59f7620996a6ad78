// SPDX-License-Identifier: Apache-2.0

// Package podenv gives the containers of a pod the same environment, command and arguments as a kubelet: values from ConfigMaps and Secrets, the
// downward API, service variables, and $(NAME) references.
//
// The guarantee: the same inputs give the same environment, in the same order, with unique names. If a mandatory object is missing, the pod waits,
// and an event names the object. An optional object is omitted only after the API server reported that it does not exist, never because it could not
// be read. No value of a ConfigMap or Secret appears in an error or an event.
//
// # Variables without a known value
//
// A variable that only the backend can fill keeps its ValueFrom: status.podIP and podIPs before the pod's status has them; hostIP and hostIPs if also
// the addresses of the node are unknown; and the limit of a container without a limit if the allocatable resources of the node are unknown. The
// provider fills such a variable when it starts the container, or refuses the pod. References to it, in later variables and in command and args, stay
// unchanged. This is the surprise: a resolved pod may still have a ValueFrom of these kinds.
package podenv
