// SPDX-License-Identifier: Apache-2.0

// Package podstatus makes the status of a pod from a backend's report about its containers, as a kubelet would
// report it.
//
// The guarantee: nothing is invented. A container without a reported exit code has an unknown end, and its pod
// has not succeeded. The phase is terminal only if the backend reports the end of the pod, or if all containers
// have ended and none starts again. It is a pure function.
//
// Note: the package has neither conditions nor the rules over time, such as that restart counts never decrease and a terminal phase
// stays. The pod controller implements them for every provider.
package podstatus
