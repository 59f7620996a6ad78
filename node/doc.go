// SPDX-License-Identifier: Apache-2.0

// Package node holds the controllers that make a backend look like a node of a Kubernetes cluster, and the
// interfaces that a provider implements to be that backend.
//
// A PodController reconciles the pods of the API server and of the backend. A NodeController registers the node and keeps it alive. Package
// nodeutil combines both.
//
// # Guarantees
//
// The pod controller keeps nine promises, each with a test of that name:
//
//  1. OneCallPerPod: CreatePod, UpdatePod and DeletePod for the same pod never overlap.
//  2. OneWriter: only one function writes pods. It patches the fields that belong to the node, with the UID as precondition, and the labels
//     and annotations that the provider itself changed. Changes by other writers survive. It never sends a spec.
//  3. StateNotEvents: decisions read the cache and the provider, never the payload of an event. Lost, duplicate and late events are
//     harmless; a resync evaluates everything again.
//  4. SameNameIsAnotherPod: the UID identifies a pod. The old pod leaves the backend before the new pod of the same name is created.
//     Reports about the old pod never apply to the new one. If a backend keeps no UIDs, its pod gets the UID of the pod that it received
//     under the name (givenUIDs).
//  5. TerminalIsFinal: a pod that is Succeeded or Failed remains so, but late exit codes are still accepted. Until they arrive, a container
//     that ran is shown neither as running nor with an invented exit code.
//  6. RemoveOnlyWhenStopped: the node removes a deleted pod from the API server
//     when the backend has confirmed the stop. There are two confirmations. The
//     first is a terminal report for that UID after DeletePod was called, with no
//     later report that the pod runs. The second is a GetPod that no longer
//     returns the pod, or returns it as terminal, after a DeletePod that
//     succeeded or answered not-found. Unless the provider is a PodAuthority, a
//     not-found about a pod that the backend had is believed only after ten
//     seconds and with a list that lacks the pod, too. The end of the grace
//     period alone confirms nothing. GetPod can leave it in doubt whether the pod
//     exists (an error without a kind and an empty list, or another pod of its
//     name). Then a DeletePod that succeeded is believed ten seconds after the
//     grace period. A pod that the backend was never given has nothing to stop.
//  7. NeverGiveUp: retries never end. Their delay grows to a minute, or is the delay that the error requests (errdefs.RetryAfter), at most
//     ten minutes. It ends at once when the backend is healthy again (Kick). The pod shows the backend's own error in its status and in
//     events, whose number does not grow with the number of tries. The log has each failure and the time of the next try. A pod that the
//     provider rejects (errdefs.InvalidInput) fails if it belongs to a Job or is never restarted. Otherwise it waits for a change, ten
//     minutes at a time. A running pod that cannot be updated shows its own status.
//  8. NeverDestroyOnSilence: a pod that one side lacks is given up only on evidence. A pod that only the backend has is deleted after a
//     while, if a live read shows that the pod does not exist or has another UID. A pod that the backend lacks is replaced or fails if the
//     backend denies it by name, for a while. A list that failed, was empty or was partial is no evidence. If many pods are missing at once
//     on either side, they are in quarantine, unless their deletion was observed or a PodAuthority lacks them. The node then has the
//     condition PodsMissing. It does not act on these pods until they are visible again, or complete lists have lacked them for minutes
//     (PodControllerConfig.MissingPodsQuarantine). Both sides are compared for as long as the controller runs.
//  9. RunReturnsClean: goroutines start only in Run and have ended when it returns. Run waits for provider calls, whose contexts it
//     cancels.
//
// # Two lanes
//
// Every pod has two lanes. The sync lane applies the desired state of the API server to the backend (syncPod). The status lane writes the
// state of the backend to the API server (writePodStatus). Each lane processes a pod only once at a time. Therefore a slow CreatePod never
// delays a status, and status writes never race.
//
// A third lane polls statuses (pollPod). It polls the pods of a provider without PodNotifier. It also polls pods
// that a PodNotifier reported before a restart, or has not reported since a change of the pod.
//
// # Parts
//
// A PodController consists of parts. Each part owns a piece of the state, and uses only parts that stand above
// it here:
//
//	podCache         reads the node's pods, from the cache and live
//	lanes            has the queues
//	givenUIDs        fills in UIDs that the backend does not keep
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
// With WithNodeLeaseGuard, which package nodeutil sets, only the process that holds the node's lease acts. Every effect on pods passes a
// fence, which is open while the last renewal is younger than 10 s. There is one exception: while the API server does not answer, this
// process may still stop a pod whose active deadline has passed. If the lease is forbidden to this process, it acts without a lease and
// logs that, unless processes share the node. Another process for the same node waits until the holder has ended or has not renewed for 12
// s. It reads everything again before it acts.
//
// Note: a deleted pod stays Terminating for as long as the backend does not confirm its stop, however
// long that takes.
package node
