// SPDX-License-Identifier: Apache-2.0

// Package service is what every provider of a service does, over a driver that has the requests of one service and what they mean.
//
// The guarantee: the policies below are the same for all services, and a driver has none of its own. A pod has one instance, whatever answers
// are lost and whenever the process starts again; lists of the driver are the only evidence that an instance is gone.
//
//	what happens                             what the kit does
//	a create has no answer                   by Config.Again: asks again at once (AgainReturnsFirst), asks again if Find shows none
//	                                         (AgainReplaces), or asks Find alone until SeenWithin is over (AgainMakesAnother)
//	the process starts again                 the same, for EarlierWithin, for pods that the cluster had when it started
//	a create is refused                      nothing is pending, unless an earlier create of the pod had no answer
//	the service says AlreadyMade             Find tells the instance
//	a pod has two instances                  the second one is stopped
//	a pod is to stop                         it is there until lists lack its instance, or the instance has ended
//	the service does not have what stops     the stop is asked for again while the service may not show the instance yet; else lists decide
//	UpdatePod of a pod that is not there     an error of the kind not-found; a changed image is refused without an Updater
//	lists fail                               GetPods is an error, GetPod has what was seen last, Ping fails after several rounds
//	the first list has not come              calls wait for it for Config.Patience; nothing is written to the service
//	a request that the service lacks         invalid-input for a pod that is there, not-found for others
//	an error quotes the request              what a pod has from other objects is taken out
//	a token is about to end                  a Renewer replaces it; without one it lives as long as activeDeadlineSeconds lets the pod run
//	a token is about to end                  a Renewer replaces it
//	a container ends that is to run again   a Starter starts it, after the back-off of a kubelet, and the kit counts the runs
//	a thing outlives its instance            a Remover removes it until that succeeds
//	a service lacks a probe                  this process does it for a Prober; what cannot be asked says nothing about the container
//	a startup or liveness probe fails        a Restarter restarts the container by the restart policy; else the pod ends as Failed, with the reason
//
// What surprises: errors do not say "create pod" and the like, as the node does that once. And a provider calls New, and nothing of the kit is a
// type to embed: what is not in the table is in the driver, which may keep the Provider to feed its Cache.
package service
