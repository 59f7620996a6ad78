// SPDX-License-Identifier: Apache-2.0

// Package podstatus makes the status of a pod from what a backend says of its containers, as a kubelet would tell it.
//
// It promises that nothing is invented: a container whose exit code the backend does not tell is shown as one whose end
// is unknown, and the pod has not succeeded. The phase is terminal only when the backend says that the pod has ended, or when
// all containers have ended and none is started again. It is a pure function.
//
// What surprises: conditions are not here, nor the rules over time, that restart counts never fall and that a terminal
// phase stays. The pod controller derives and keeps them for every provider.
package podstatus
