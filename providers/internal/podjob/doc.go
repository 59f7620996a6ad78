// SPDX-License-Identifier: Apache-2.0

// Package podjob runs one pod on a machine chosen by another system: in a job of a batch system, or in a virtual machine. Containers are programs of
// the machine, or of images.
//
// The guarantee: only the process with the successful claim runs the pod. The host gets the pod's status and logs for the node. No process of the pod
// runs after this process has ended. Package podruntime manages the containers as a kubelet does: init containers, restarts, probes, hooks and the
// grace period.
//
// # The seam
//
// The system behind this process implements Host, and calls Run:
//
//	Claim        once, first. The pod runs only if it succeeds, so that the pod of a job started twice runs once.
//	Bundle       the pod with its objects, tokens and logins. Read again while the pod runs, as the node renews them.
//	WriteStatus  at each new status. It is tried again after an error; the pod runs on.
//	StopOrder    at each signal but SIGTERM, at each Config.Wake, and every Config.LookEvery.
//
// Config has the rest: where logs go, which variables of this process containers have, what containers must not see, and how long the machine leaves
// to the pod after SIGTERM. Rules for a host:
//
//   - Each call has a timeout of 10 seconds, because signals wait in the meantime. A slower host uses its own goroutine. The function that calls Run
//     starts and ends that goroutine.
//   - A status with Ended is the last one. The logs of the pod are complete by then. A host that uploads logs uploads the rest of them before
//     it writes this status.
//   - Logs are files below Config.LogDir: NAMESPACE_NAME_UID/CONTAINER/RUN.log, in the format of the CRI, one file for each run of a container.
//     Rotated files are in the same directory as RUN.log.1 (the newest) to RUN.log.4.
//   - Bundle may be called at each read of an object. A host whose requests are expensive caches the result.
//
// A pod gets the devices of one kind (Bundle.DeviceKind) that its containers request as a resource. The devices come from the CDI specifications of
// the machine. The package uses only the types of the CDI library, because the library edits OCI configurations, and these containers have none.
//
// To make a program of a host, call Main in an init function of the host's package:
//
//	func init() {
//		podjob.Main("batch", func(args []string) error {
//			return podjob.Run(context.Background(), podjob.Config{Host: …})
//		})
//	}
//
// The program is then started as PROGRAM enter.Marker enter.ModeRun batch ARGS. Streams (exec, attach, port-forward) come as frames to the socket in
// the status. PROGRAM enter.Marker enter.ModeStream SOCKET connects its standard input and output to the socket, for ssh and similar tools.
// Config.Listener accepts the same frames over a network. The node's side is the function Stream.
//
// Note: the program may be the same program as the node. A process with enter.Marker as its first argument never reaches main.
package podjob
