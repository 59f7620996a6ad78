// SPDX-License-Identifier: Apache-2.0

// Package node holds the controllers that make a backend look like a node of a
// Kubernetes cluster, and the interfaces that a provider implements to be that
// backend.
//
// A PodController keeps the pods of the API server and of the backend in step.
// A NodeController registers the node and keeps it alive. Package nodeutil puts
// both together.
//
// # Guarantees
//
// The pod controller keeps nine promises, each with a test of that name:
//
//  1. OneCallPerPod: CreatePod, UpdatePod and DeletePod for one pod never
//     overlap.
//  2. OneWriter: one function writes pods. It patches the fields that are the
//     node's, with the UID as precondition, and the labels and annotations that
//     the provider itself changed. What others write survives. It never sends a
//     spec.
//  3. StateNotEvents: decisions read the cache and the provider, never the
//     payload of an event. Lost, doubled and late events are harmless; a resync
//     is a real re-evaluation.
//  4. SameNameIsAnotherPod: a pod is its UID. The old pod leaves the backend
//     before the new one of the same name comes, and what is reported about the
//     old one is not believed about the new one. A backend that keeps no UID is
//     matched by name.
//  5. TerminalIsFinal: a pod that Succeeded or Failed stays so, but late exit
//     codes still arrive. Until they do, a container that ran is shown neither as
//     running nor with an end that nobody told.
//  6. RemoveOnlyWhenStopped: the node removes a deleted pod from the API server when the backend has confirmed the
//     stop: by a terminal report for that UID, and none since that it runs, once DeletePod was called, or by a
//     GetPod that no longer returns the pod, or returns it as terminal, after a DeletePod that succeeded or answered
//     not-found. A not-found about a pod that the backend had is believed after ten seconds and with a list that
//     lacks it, too, unless the provider is a PodAuthority. The end of the grace period alone confirms nothing;
//     where GetPod leaves it in doubt whether the pod is there (an error without a kind and an empty list, or
//     another pod of its name), a DeletePod that succeeded is believed ten seconds after it. A pod that the backend
//     was never given has nothing to stop.
//  7. NeverGiveUp: retries never end. Their delay grows to a minute, or is the one that
//     the error asks for (errdefs.RetryAfter), ten minutes at most, and ends at
//     once when the backend is healthy again (Kick). The pod shows the backend's
//     own error in its status and in an event, which do not grow with the number
//     of tries; each failure and the time of the next try are in the log. A pod
//     that the provider rejects (errdefs.InvalidInput) fails, if it is a Job's or
//     never restarted, and else waits for a change, ten minutes at a time. A
//     running pod that cannot be updated shows its own status.
//  8. NeverDestroyOnSilence: a pod that one side lacks is given up on
//     evidence. One that only the backend has is deleted when it was so for a
//     while and a live read says that the pod does not exist or has another
//     UID; one that the backend lacks is replaced or fails when it says so by
//     name, for a while. A list that failed, was empty or was partial is no
//     evidence. Many at once are in quarantine, on either side (but not those that a PodAuthority lacks), unless they were
//     seen to be deleted: the node has the condition PodsMissing, and nothing is
//     done about them until they show or complete lists have said the same for
//     minutes (PodControllerConfig.MissingPodsQuarantine). Both sides are compared
//     for as long as the controller runs.
//  9. RunReturnsClean: goroutines start in Run only and have ended when it
//     returns. Run waits for provider calls, whose contexts it cancels.
//
// # Two lanes
//
// Every pod has two lanes. The sync lane tells the backend what the API server
// wants (syncPod); the status lane tells the API server what the backend has
// (writePodStatus). Both work on one pod at a time each, so a slow CreatePod never
// holds up a status, and one status write never races another.
//
// A third lane asks for statuses (pollPod): those of a provider without
// PodNotifier, and those that a PodNotifier told before a restart, or has not told
// since a change of the pod.
//
// # Parts
//
// A PodController consists of parts. Each part owns a piece of the state, and uses only parts that stand above it here:
//
//	podCache         reads the node's pods, from the cache and live
//	lanes            has the queues
//	podStates        remembers the state of each pod; statewriters.go says who may change it
//	podInputs        reads ConfigMaps, Secrets, tokens and claims for the provider
//	backend          makes every call of the provider
//	quarantines      decides whether too many pods are missing at once
//	activeDeadlines  ends the active time of pods
//	podAdmission     checks features, and room on the node
//	podTracker       begins and ends the state of a pod
//	podReports       takes reports of the provider
//	podWorker        is the sync lane
//	apiOutage        notices that the API server answers again
//	statusManager    is the status lane
//	poller           is the poll lane
//	relister         compares both sides
//	leaseTerms       lets work pass while this process holds the lease
//	podEvents        marks pods in the lanes
//	drain            stops all pods at shutdown
//
// # Two processes for one node
//
// With WithNodeLeaseGuard, which package nodeutil sets, only the process that holds
// the node's lease acts: every effect on pods passes a fence that is open while the
// last renewal is younger than 10 s. One passes it longer, while the API server does not
// answer this process: the stop of a pod whose active deadline has passed. Where the
// lease is forbidden to this process, it acts without one and says so, unless processes share the node. Another
// process for the same node stands by until the holder has ended or was silent for
// 12 s, and reads everything anew before it acts.
//
// What surprises: a pod that was deleted stays Terminating for as long as the
// backend does not confirm its stop, however long that takes.
package node
