// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// A provider must be a PodLifecycleHandler, and for a whole node a nodeutil.Provider. Everything else is
// optional. An ability is a small interface that the node finds by a type assertion. This list contains all
// abilities; a test of the repository checks that it is complete.
//
//	ability                        with it                                    without it
//	PodNotifier                    reports changes of pods                    is asked for each pod, again and again
//	PodAuthority                   reports whether its answers are complete   many pods missing at once are doubted
//	PodObjectsUser                 resolves environments, writes volumes      gets pods with resolved environments
//	PodTokensUser                  gets tokens of service accounts            has none for its pods
//	PodTrustBundlesUser            gets ClusterTrustBundles                   has none for its pods
//	PodCertificatesUser            gets certificates for its pods             has none for its pods
//	PodClaimsUser                  finds the PersistentVolumes of pods        mounts none
//	PullCredentialsUser            gets credentials for pulling images        pulls public images only
//	BackgroundRunner               works while the node runs                  works within calls only
//	NodeProvider                   decides whether the node is Ready          the node is Ready while its controllers run
//	capability.Declarer            gets only pods that it can run             gets every pod
//	nodeutil.ProbeMetricsProvider  shows its probes at /metrics/probes        shows no probes
//	nodeutil.VolumeProvisioner     has room for PersistentVolumes             the node makes none
//	nodeutil.EndpointSlicesUser    gets the addresses behind services         has none
//	cli.NodeConfigurer             writes capacity into the Node object       the program sets the capacity
//	cli.Adviser                    names the programs that it runs to doctor  doctor names none
//	cli.Examiner                   tells doctor why it would not work         doctor calls its Ping
//
// An ability with a package name in front is declared beside its caller, or beside the types of its methods.

// PodNotifier is an ability of a provider that can report changes of its pods. Providers without it are polled.
type PodNotifier interface {
	// NotifyPods gives the provider the function to call with the whole pod whenever the status of a pod has changed. The node calls
	// NotifyPods once, before any other method, and NotifyPods must return at once. The provider may call the function from any goroutine,
	// also from within CreatePod and DeletePod, until ctx ends. The function copies the pod and returns without waiting for the API server.
	// The end of a stopped pod must be reported within 250 ms after GetPod no longer returns the pod. After that the stop counts as
	// confirmed, and running containers count as killed.
	NotifyPods(ctx context.Context, notify func(*corev1.Pod))
}

// PodAuthority is an ability of a provider that knows whether its answers are complete. It answers, for example, from its own record of
// running pods, or from a cache that knows when it is filled. Without this ability, the node judges by the number of pods that are missing
// at the same time.
type PodAuthority interface {
	// AnswersForAllPods reports whether a pod does not exist if GetPod and GetPods do not return it. If it returns true, the node replaces
	// or fails missing pods even if there are many (after a reboot of the machine, for example). If it returns false, the node replaces and
	// fails none of them. AnswersForAllPods must return at once.
	AnswersForAllPods() bool
}

// PodObjectsUser is an ability of a provider that starts the containers of its pods one by one, as a kubelet does, and writes volumes
// itself. Such a provider differs in two ways:
//
//   - Its pods keep the environment of the spec. The provider requests the resolved environment
//     of a container when it starts the container, with the addresses that the pod has then.
//   - After a restart it receives UpdatePod for every pod that it had before, so it need not store specs.
type PodObjectsUser interface {
	// UsePodObjects gives the provider the reader of environments and volumes. The node calls it once, before any other method, and it must
	// return at once.
	UsePodObjects(PodObjects)
}

// PodTokensUser is an ability of a provider that gives containers the tokens of their service accounts, as the
// projected volumes of a pod request them.
type PodTokensUser interface {
	// UsePodTokens gives the provider the source of tokens. The node calls it once, before any other method, and it must return at once.
	// Tokens are available as soon as there are pods, for example in CreatePod.
	UsePodTokens(PodTokens)
}

// PodTrustBundlesUser is an ability of a provider that gives containers the certificates of ClusterTrustBundles.
// The projected volumes of a pod select the bundles.
type PodTrustBundlesUser interface {
	// UsePodTrustBundles gives the provider the source of bundles. The node calls it once, before any other method, and it must return at
	// once. Bundles are available as soon as there are pods, for example in CreatePod.
	UsePodTrustBundles(PodTrustBundles)
}

// PodCertificatesUser is an ability of a provider that gives containers keys and certificates. The projected
// volumes of a pod request them.
type PodCertificatesUser interface {
	// UsePodCertificates gives the provider the source of certificates. The node calls it once, before any other method, and it must return
	// at once. Certificates can be requested as soon as there are pods, for example in CreatePod.
	UsePodCertificates(PodCertificates)
}

// PodClaimsUser is an ability of a provider that mounts PersistentVolumes.
type PodClaimsUser interface {
	// UsePodClaims gives the provider the finder of volumes for claims. The node calls it once, before any other method, and it must return
	// at once. Volumes can be requested as soon as there are pods, for example in CreatePod.
	UsePodClaims(PodClaims)
}

// PullCredentialsUser is an ability of a provider that pulls images, or passes pull credentials to its backend.
type PullCredentialsUser interface {
	// UsePullCredentials gives the provider the source of credentials. The node calls it once, before any other method, and it must return
	// at once.
	UsePullCredentials(PullCredentials)
}

// BackgroundRunner is an ability of a provider with background work while the node runs.
type BackgroundRunner interface {
	// RunInBackground is called once, after the node offered the abilities above and called NotifyPods. It works
	// until ctx ends, and returns when all its goroutines and processes have ended. Run of the PodController
	// waits for it. If RunInBackground returns an error earlier, Run fails with that error.
	RunInBackground(ctx context.Context) error
}

// NodeProvider is the ability of a provider to report the health of its node.
type NodeProvider interface {
	// Ping returns nil when the backend can run pods. Otherwise the Ready condition of the node turns False with the error as its message,
	// so the error must not contain secrets. Calls never overlap. A Ping that takes longer than the ping timeout counts as failed.
	Ping(context.Context) error

	// NotifyNodeStatus gives the provider the function to call when the node has changed. It is called once, when the controller starts,
	// and must return at once. The function copies only the status, labels and annotations of the given node. It may be called from any
	// goroutine, and returns without waiting for the API server.
	NotifyNodeStatus(ctx context.Context, cb func(*corev1.Node))
}
