// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// A provider must be a PodLifecycleHandler, and for a whole node a nodeutil.Provider. All else is optional: an ability is a small interface
// that is found by assertion. This is the list of all of them; a test of the repository holds that it is complete.
//
//	ability                        with it                                    without it
//	PodNotifier                    reports changes of pods                    is asked for each pod, again and again
//	PodAuthority                   says whether its answers are complete      many pods missing at once are doubted
//	PodObjectsUser                 resolves environments, writes volumes      gets pods with resolved environments
//	PodTokensUser                  gets tokens of service accounts            has none for its pods
//	PodTrustBundlesUser            gets ClusterTrustBundles                   has none for its pods
//	PodCertificatesUser            gets certificates for its pods             has none for its pods
//	PodClaimsUser                  finds the PersistentVolumes of pods        mounts none
//	PullCredentialsUser            gets credentials to pull images with       pulls what is public
//	BackgroundRunner               works while the node runs                  works within calls only
//	NodeProvider                   decides whether the node is Ready          the node is Ready while its controllers run
//	capability.Declarer            gets pods that it can run                  gets every pod
//	nodeutil.ProbeMetricsProvider  shows its probes at /metrics/probes        there is nothing to see
//	nodeutil.VolumeProvisioner     has room for PersistentVolumes             the node makes none
//	nodeutil.EndpointSlicesUser    gets the addresses behind services         has none
//	cli.NodeConfigurer             writes capacity into the Node object       the node has what the program gives it
//	cli.Adviser                    tells doctor of the programs that it runs  doctor names none
//	cli.Examiner                   tells doctor why it would not work         doctor asks its Ping
//
// Those with a package before their name are with what asks for them, or with the types that they are made of.

// PodNotifier is an ability of a provider that can tell when a pod changes.
// Providers without it are polled.
type PodNotifier interface {
	// NotifyPods hands the provider the function to call whenever the status
	// of a pod changed, with the whole pod. It is called once, before any other
	// method, and must return at once. The function may be called from any
	// goroutine, also from within CreatePod and DeletePod, until ctx ends; it
	// copies the pod and returns without waiting for the API server. How a pod ended that was
	// to stop is told at latest 250 ms after GetPod has ceased to return it: then the stop counts as
	// confirmed, and what ran as killed.
	NotifyPods(ctx context.Context, notify func(*corev1.Pod))
}

// PodAuthority is an ability of a provider that knows whether its answers are complete.
// It answers from what it runs itself, for example, or from a cache of which it knows when that is
// filled. Without it, the node has to guess from how many pods are missing at once.
type PodAuthority interface {
	// AnswersForAllPods reports whether a pod that GetPod and GetPods do not have does not
	// exist. While it is true, many pods that are missing at once, after a reboot of the machine for
	// example, are replaced or fail as a single one does; while it is false, none is. It must return at once.
	AnswersForAllPods() bool
}

// PodObjectsUser is an ability of a provider that starts the containers of its pods one by one, as a
// kubelet does, and writes volumes itself. Two things are different for it:
//
//   - Its pods come with the environment as it is in the spec. It asks for that of a container
//     when it starts the container, with the addresses that the pod has then.
//   - After a restart it gets UpdatePod for every pod that it had before, so it need not
//     keep specs.
type PodObjectsUser interface {
	// UsePodObjects hands the provider what it asks. It is called once, before any other
	// method, and must return at once.
	UsePodObjects(PodObjects)
}

// PodTokensUser is an ability of a provider that gives containers the tokens of their
// service accounts: those of the projected volumes of a pod.
type PodTokensUser interface {
	// UsePodTokens hands the provider what it asks for tokens. It is called once, before
	// any other method, and must return at once. Tokens are there as soon as pods are:
	// within CreatePod for example.
	UsePodTokens(PodTokens)
}

// PodTrustBundlesUser is an ability of a provider that gives containers the certificates of ClusterTrustBundles: those that
// the projected volumes of a pod select.
type PodTrustBundlesUser interface {
	// UsePodTrustBundles hands the provider what it asks for bundles. It is called once, before any other
	// method, and must return at once. They are there as soon as pods are: within CreatePod for example.
	UsePodTrustBundles(PodTrustBundles)
}

// PodCertificatesUser is an ability of a provider that gives containers keys with certificates: those that the projected
// volumes of a pod ask for.
type PodCertificatesUser interface {
	// UsePodCertificates hands the provider what it asks for certificates. It is called once, before any other
	// method, and must return at once. They can be asked for as soon as pods are there: within CreatePod for example.
	UsePodCertificates(PodCertificates)
}

// PodClaimsUser is an ability of a provider that mounts PersistentVolumes.
type PodClaimsUser interface {
	// UsePodClaims hands the provider what finds the volumes of claims. It is called once, before any other
	// method, and must return at once. They can be asked for as soon as pods are there: within CreatePod for example.
	UsePodClaims(PodClaims)
}

// PullCredentialsUser is an ability of a provider that pulls images, or tells its backend how to.
type PullCredentialsUser interface {
	// UsePullCredentials hands the provider what it asks for credentials. It is called once, before
	// any other method, and must return at once.
	UsePullCredentials(PullCredentials)
}

// BackgroundRunner is an ability of a provider that has work of its own to do while the node
// runs.
type BackgroundRunner interface {
	// RunInBackground is called once, after the abilities above were offered and
	// NotifyPods was called. It works until ctx ends, and returns when nothing that it started runs
	// any more. Run of the PodController waits for it, and fails with an error that it returns earlier.
	RunInBackground(ctx context.Context) error
}

// NodeProvider is what a provider implements to say how its node is doing.
type NodeProvider interface {
	// Ping returns nil when the backend can run pods. Otherwise the Ready
	// condition of the node turns False with the error as its message, which
	// must therefore hold nothing secret. Calls never overlap. A Ping that
	// takes longer than the ping time-out counts as failed.
	Ping(context.Context) error

	// NotifyNodeStatus hands the provider the function to call when the node
	// changed. It is called once, when the controller starts to run, and
	// must return at once. The function takes over status, labels and
	// annotations of the node it is given, nothing else; it copies them, may be
	// called from any goroutine, and returns without waiting for the API server.
	NotifyNodeStatus(ctx context.Context, cb func(*corev1.Node))
}
