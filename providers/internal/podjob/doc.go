// SPDX-License-Identifier: Apache-2.0

// Package podjob runs one pod on a machine that some other system chose: in a job of a batch system, or in a virtual machine. Containers are
// programs of the machine, or of images.
//
// The guarantee: only the process whose claim succeeds runs the pod, its status and its logs get to where the node reads them, and nothing of
// the pod runs after this process has ended. Package podruntime keeps the containers, as on a node of its own: init containers, restarts,
// probes, hooks and the grace period.
//
// # The seam
//
// A system that starts this process implements Host, and calls Run:
//
//	Claim        once, first. The pod runs only if it succeeds, so that a pod whose job is started twice runs once.
//	Bundle       the pod with its objects, tokens and logins. Read again while the pod runs, as the node renews them.
//	WriteStatus  at each new status. It is tried again after an error; the pod runs on.
//	StopOrder    at each signal but SIGTERM, at each Config.Wake, and every Config.LookEvery.
//
// Config has the rest: where logs go, which variables of this process containers have, what containers must not see, and how long the machine
// leaves to the pod after SIGTERM. What a host must keep in mind:
//
//   - Each call has a context of 10 seconds, because signals wait meanwhile. A host that needs longer works in a goroutine of its own, which
//     the function that calls Run begins and ends.
//   - A status with Ended is the last one. The logs of the pod are whole by then: a host that uploads logs uploads the rest of them before it
//     writes this status, so that who reads the end of a pod finds its logs.
//   - Logs are files below Config.LogDir: NAMESPACE_NAME_UID/CONTAINER/RUN.log, in the format of the CRI, one file for each run of a container,
//     with rotated files beside it as RUN.log.1 (the newest) to RUN.log.4.
//   - Bundle may be called at each read of an object: a host that pays for requests keeps the answer for a while.
//
// A program is made of a host by a call of Main in an init function of the host's package:
//
//	func init() {
//		podjob.Main("batch", func(args []string) error {
//			return podjob.Run(context.Background(), podjob.Config{Host: …})
//		})
//	}
//
// The program is then started as PROGRAM enter.Marker enter.ModeRun batch ARGS. Streams (exec, attach, port-forward) come as frames to the
// socket that the status names; PROGRAM enter.Marker enter.ModeStream SOCKET joins its standard input and output with the socket, for ssh and
// its like. Config.Listener takes the same frames from a network. The side of the node is Stream.
//
// What surprises: it may be the same program as the node. A process with enter.Marker as its first argument never gets to main.
package podjob
