// SPDX-License-Identifier: Apache-2.0

// Package service implements the common part of every provider of a service. A driver below it has the requests
// of one service and their meaning.
//
// The guarantee: the policies below are the same for all services, and a driver has no policy of its own. A pod
// has one instance, even if answers are lost or the process restarts at any time. The lists of the driver are
// the only evidence that an instance is gone.
//
//	event                                    action of the kit
//	a create has no answer                   by Config.Again: asks again at once (AgainReturnsFirst), asks again if Find shows no
//	                                         instance (AgainReplaces), or asks only Find until SeenWithin is over (AgainMakesAnother)
//	the process starts again                 the same, for EarlierWithin, for pods that the cluster had when it started
//	a create is refused                      nothing is pending, unless an earlier create of the pod had no answer
//	the service says AlreadyMade             Find returns the instance
//	a pod has two instances                  the second instance is stopped
//	a pod is to stop                         the pod exists until lists lack its instance, or the instance has ended
//	the service lacks the instance to stop   the stop is repeated while the service may not show the instance yet; else lists decide
//	UpdatePod of a pod that does not exist   an error of the kind not-found; a changed image is refused without an Updater
//	lists fail                               GetPods is an error, GetPod returns the last known state, Ping fails after several rounds
//	the first list has not come              calls wait for it for Config.Patience; nothing is written to the service
//	a request that the service lacks         invalid-input for an existing pod, not-found for others
//	an error quotes the request              values that the pod has from other objects are removed
//	a token is about to end                  a Renewer replaces it; without a Renewer, the token lives as long as activeDeadlineSeconds lets the pod run
//	a container that should run again ends   a Starter starts it, after the back-off of a kubelet, and the kit counts the runs
//	a thing outlives its instance            a Remover removes it until that succeeds
//	a service lacks a probe                  this process does it for a Prober; a probe that cannot be asked has no result for the container
//	a startup or liveness probe fails        a Restarter restarts the container by the restart policy; else the pod ends as Failed, with the reason
//
// Note: errors do not begin with text such as "create pod", because the node adds that. A provider calls New; the kit has no type
// to embed. Everything that is not in the table is in the driver, which may store the Provider to feed its Cache.
package service
