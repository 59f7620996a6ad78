// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certapi"
	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/podcerts"
	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/trustbundles"
	"github.com/virtual-kubelet/virtual-kubelet/internal/objects"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podclaims"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podservices"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
)

// podInputs has the sources of the inputs that pod specs refer to: ConfigMaps, Secrets, tokens, certificates, trust bundles, volumes of
// claims and image pull credentials.
type podInputs struct {
	objects      podObjects
	secrets      *podsecrets.Manager
	bundles      podTrustBundles
	certificates podCertificates
	claims       podClaims
	store        *objects.Store         // nil: the caller's own informers
	synced       []cache.InformerSynced // the informers whose caches are read
}

// newPodInputs chooses the source of each input by the types of the caller's client and informers.
func newPodInputs(cfg *PodControllerConfig, hostIPs func() []corev1.HostIP) *podInputs {
	in := &podInputs{objects: podObjects{env: podenv.Config{
		Services:        podservices.Lister{ServiceLister: cfg.ServiceInformer.Lister()},
		Recorder:        cfg.EventRecorder,
		NodeAllocatable: cfg.NodeAllocatable,
		HostIPs:         hostIPs,
	}}}
	in.synced = []cache.InformerSynced{cfg.PodInformer.Informer().HasSynced, cfg.ServiceInformer.Informer().HasSynced}
	if byName, ok := cfg.ConfigMapInformer.(interface{ Store() *objects.Store }); ok {
		in.store = byName.Store()
		in.objects.env.Objects = in.store
	} else {
		in.objects.env.Objects = objects.FromListers(cfg.ConfigMapInformer.Lister(), cfg.SecretInformer.Lister())
		in.synced = append(in.synced, cfg.ConfigMapInformer.Informer().HasSynced, cfg.SecretInformer.Informer().HasSynced)
	}
	in.useSecrets(cfg)
	client, _ := cfg.PodClient.(corev1client.CoreV1Interface)
	in.useCertificates(client, cfg)
	in.useClaims(client, cfg.NodeName)
	return in
}

// useSecrets chooses the source of tokens and credentials for pods.
func (in *podInputs) useSecrets(cfg *PodControllerConfig) {
	secrets := podsecrets.Config{
		Secret: func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
			return in.objects.env.Objects.Secret(ctx, namespace, name)
		},
		Over: func(uid types.UID) {
			if in.certificates.manager != nil {
				in.certificates.manager.Forget(uid)
			}
		},
		Recorder: cfg.EventRecorder,
	}
	secrets.Accounts, _ = cfg.PodClient.(corev1client.ServiceAccountsGetter)
	if in.store != nil {
		secrets.Before = func(ctx context.Context, namespace, account string) {
			in.awaitRight(ctx, "create", "serviceaccounts", "token", namespace, account)
		}
	}
	in.secrets = podsecrets.New(secrets)
	in.objects.secrets = in.secrets
}

// useCertificates chooses the source of trust bundles and certificates. The client has them if it is the client
// of a whole API server.
func (in *podInputs) useCertificates(client corev1client.CoreV1Interface, cfg *PodControllerConfig) {
	in.bundles, in.certificates = podTrustBundles{secrets: in.secrets}, podCertificates{secrets: in.secrets}
	if client == nil {
		return
	}
	asks := client.RESTClient()
	if shared, ok := asks.(*rest.RESTClient); ok && shared == nil { // nil in tests
		return
	}
	api := certapi.New(asks)
	in.bundles.reader = trustbundles.New(api)
	in.certificates.manager = podcerts.New(podcerts.Config{
		Requests: api,
		Account: func(ctx context.Context, namespace, name string) (types.UID, error) {
			in.awaitRight(ctx, "get", "serviceaccounts", "", namespace, name)
			account, err := client.ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return account.UID, nil
		},
		Node: func(ctx context.Context) (string, types.UID, error) {
			node, err := client.Nodes().Get(ctx, cfg.NodeName, metav1.GetOptions{})
			if err != nil {
				return "", "", err
			}
			return node.Name, node.UID, nil
		},
		Recorder: cfg.EventRecorder,
		Remember: func(pod types.UID, purpose, name string, key []byte) {
			in.secrets.Values(pod).Remember("certificate/"+purpose, name, key)
		},
	})
}

// useClaims chooses the source of claims and their volumes. Each object is read by name when it is needed.
func (in *podInputs) useClaims(client corev1client.CoreV1Interface, nodeName string) {
	in.claims = podClaims{secrets: in.secrets}
	if client == nil {
		return
	}
	in.claims.reader = &podclaims.Reader{
		Claim: func(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
			in.awaitRight(ctx, "get", "persistentvolumeclaims", "", namespace, name)
			return client.PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		Volume: func(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
			in.awaitRight(ctx, "get", "persistentvolumes", "", "", name)
			return client.PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		},
		Node: func(ctx context.Context) (*corev1.Node, error) {
			return client.Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		},
	}
}

// awaitRight waits until the node may read or create an object that a pod names, if the API server grants that right
// with the pod.
func (in *podInputs) awaitRight(ctx context.Context, verb, resource, subresource, namespace, name string) {
	if in.store != nil {
		in.store.Await(ctx, authorizationv1.ResourceAttributes{
			Verb: verb, Resource: resource, Subresource: subresource, Namespace: namespace, Name: name,
		})
	}
}

// offerInputs gives a provider the sources of its inputs.
func (in *podInputs) offerInputs(ctx context.Context, provider PodLifecycleHandler) error {
	var errs []error
	call := func(method string, use func()) {
		errs = append(errs, (&providercall.Caller{}).Do(ctx, method, func(context.Context) error { use(); return nil }))
	}
	if u, ok := provider.(PodTokensUser); ok {
		call("UsePodTokens", func() { u.UsePodTokens(podTokens{in.secrets}) })
	}
	if u, ok := provider.(PullCredentialsUser); ok {
		call("UsePullCredentials", func() { u.UsePullCredentials(pullCredentials{in.secrets}) })
	}
	if u, ok := provider.(PodTrustBundlesUser); ok {
		call("UsePodTrustBundles", func() { u.UsePodTrustBundles(in.bundles) })
	}
	if u, ok := provider.(PodCertificatesUser); ok {
		call("UsePodCertificates", func() { u.UsePodCertificates(in.certificates) })
	}
	if u, ok := provider.(PodClaimsUser); ok {
		call("UsePodClaims", func() { u.UsePodClaims(in.claims) })
	}
	if u, ok := provider.(PodObjectsUser); ok {
		call("UsePodObjects", func() { u.UsePodObjects(in.objects) })
	}
	return errors.Join(errs...)
}

// followObjects calls changed for each pod that refers to a changed object, until end is called. end also releases the objects of all pods,
// because other nodes may share the store, and it may outlive this node.
func (in *podInputs) followObjects(changed func(pod types.NamespacedName), states *podStates) (end func()) {
	if in.store == nil {
		return func() {}
	}
	remove := in.store.OnChange(changed)
	return func() {
		remove()
		for key, uid := range states.uids() {
			in.forgetObjects(key, uid)
		}
	}
}

// trackObjects registers the objects that a pod refers to.
func (in *podInputs) trackObjects(api *corev1.Pod) {
	if in.store != nil {
		in.store.Track(api)
	}
	in.secrets.Track(api)
}

// forgetObjects releases the objects that a pod refers to.
func (in *podInputs) forgetObjects(key string, uid types.UID) {
	if in.store != nil && uid != "" {
		namespace, name, _ := cache.SplitMetaNamespaceKey(key)
		in.store.Forget(namespace, name, uid)
	}
}
