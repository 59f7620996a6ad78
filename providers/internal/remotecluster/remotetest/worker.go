// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// Worker is a remote cluster with one node whose containers are goroutines. The API server, the scheduler and the
// kubelet API are real.
type Worker struct {
	API *testapi.API
	// Name is the name of the node.
	Name  string
	Cloud *inprocess.Cloud
}

// Label selects the worker of the test for pods, in a cluster shared by tests.
const Label = "test-worker"

// StartWorker runs the node until the test ends.
func StartWorker(t *testing.T, api *testapi.API) *Worker {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &Worker{API: api, Name: api.NodeName(t), Cloud: inprocess.New(ctx)}
	credentials := api.NodeCredentials(t, w.Name)
	mux := http.NewServeMux()
	n, err := nodeutil.NewNode(w.Name, func(c nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return everything{inprocess.Open(w.Cloud, inprocess.Objects{ConfigMaps: c.ConfigMaps, Secrets: c.Secrets})}, nil, nil
	}, nodeutil.WithClient(api.Client),
		nodeutil.WithTLSConfig(nodeutil.WithKeyPairFromPath(credentials.CertFile, credentials.KeyFile), nodeutil.WithCAFromPath(credentials.CAFile)),
		nodeutil.AttachProviderRoutes(mux),
		func(cfg *nodeutil.NodeConfig) error {
			cfg.Handler, cfg.HTTPListenAddr, cfg.NumWorkers = mux, "127.0.0.1:0", 16
			cfg.NodeSpec.Labels = map[string]string{Label: w.Name}
			cfg.NodeSpec.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
			cfg.NodeSpec.Status.Capacity = Roomy()
			cfg.NodeSpec.Status.Allocatable = Roomy()
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = n.Run(ctx) }() // Err has the error
	t.Cleanup(func() {
		cancel()
		<-n.Done()
		if err := n.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("the worker ended with %v", err)
		}
	})
	if err := n.WaitReady(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	return w
}

// everything declares all features, although some have no effect on goroutines.
type everything struct{ *inprocess.Provider }

// Capabilities implements capability.Declarer.
func (everything) Capabilities() capability.Declaration { return capability.All() }

// CreatePod implements node.PodLifecycleHandler. It replaces claims by empty directories, because goroutines
// cannot mount anything.
func (e everything) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	pod = pod.DeepCopy()
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.PersistentVolumeClaim != nil {
			v.VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}
	}
	return e.Provider.CreatePod(ctx, pod)
}

// Roomy returns a capacity that is sufficient for every test.
func Roomy() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1k"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("1k"),
	}
}

// Placement returns a placement on this worker.
func (w *Worker) Placement() remotecluster.Placement {
	return remotecluster.Placement{
		NodeSelector: map[string]string{Label: w.Name},
		Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}
}

// Settings returns the lines of a configuration file for Placement.
func (w *Worker) Settings() string {
	return "placement: {nodeSelector: {" + Label + ": " + w.Name + "}, tolerations: [{operator: Exists}]}\n"
}

// Running returns the worker's pods of a home pod.
func (w *Worker) Running(home *corev1.Pod) ([]*corev1.Pod, error) {
	all, err := inprocess.Open(w.Cloud, inprocess.Objects{}).List(context.Background())
	var found []*corev1.Pod
	for _, pod := range all {
		if pod.Labels[remotecluster.LabelUID] == string(home.UID) {
			found = append(found, pod)
		}
	}
	return found, err
}

// Instances returns the number of running containers of a home pod.
func (w *Worker) Instances(home *corev1.Pod) (n int, err error) {
	pods, err := w.Running(home)
	for _, pod := range pods {
		n += w.Cloud.Instances(pod.UID)
	}
	return n, err
}

// Kill ends a container of a home pod.
func (w *Worker) Kill(home *corev1.Pod, container string) error {
	pods, err := w.Running(home)
	if err != nil || len(pods) != 1 {
		return fmt.Errorf("the worker has %d pods for %s (%w)", len(pods), home.Name, err)
	}
	return w.Cloud.Kill(pods[0].UID, container)
}

// Lose removes the remote pod by force, as a third party may.
func (w *Worker) Lose(home *corev1.Pod) error {
	pods, err := w.Running(home)
	for _, pod := range pods {
		err = errors.Join(err, w.API.Client.CoreV1().Pods(pod.Namespace).Delete(context.Background(), pod.Name, *metav1.NewDeleteOptions(0)))
	}
	return err
}

// Left returns a function that lists the contents of a remote namespace and the namespace itself, by kind. paths
// lists the paths of further kinds, such as /apis/offloading.liqo.io/v1beta1/namespaces/NAME/shadowpods. The
// list leaves out the objects that the cluster creates in every namespace.
func (w *Worker) Left(namespace string, paths ...string) func() (map[string][]string, error) {
	own := map[string]bool{"configmaps/kube-root-ca.crt": true, "serviceaccounts/default": true}
	for _, kind := range []string{
		"pods", "secrets", "configmaps", "services", "serviceaccounts", "endpoints", "persistentvolumeclaims", "events",
	} {
		paths = append(paths, "/api/v1/namespaces/"+namespace+"/"+kind)
	}
	paths = append(paths, "/apis/discovery.k8s.io/v1/namespaces/"+namespace+"/endpointslices", "/apis/batch/v1/namespaces/"+namespace+"/jobs",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/roles", "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/rolebindings")
	return func() (map[string][]string, error) {
		left := map[string][]string{}
		if _, err := w.API.Client.CoreV1().Namespaces().Get(context.Background(), namespace, metav1.GetOptions{}); err == nil {
			left["namespaces"] = []string{namespace}
		} else if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("look for the namespace %s: %w", namespace, err)
		}
		for _, p := range paths {
			data, err := w.API.Client.CoreV1().RESTClient().Get().AbsPath(p).SetHeader("Accept", "application/json").DoRaw(context.Background())
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", p, err)
			}
			var list struct {
				Items []struct{ Metadata metav1.ObjectMeta }
			}
			if err := json.Unmarshal(data, &list); err != nil {
				return nil, fmt.Errorf("list %s: %w", p, err)
			}
			kind := path.Base(p)
			for _, item := range list.Items {
				if !own[kind+"/"+item.Metadata.Name] {
					left[kind] = append(left[kind], item.Metadata.Name)
				}
			}
		}
		return left, nil
	}
}

// Kept has the rules for the objects in Worker.Left.
var Kept = map[string]providertest.Kept{
	"events":     {Most: 1000, Rule: "the API server of the remote cluster removes events after an hour, by --event-ttl"},
	"namespaces": {Most: 1, Rule: "one for each namespace of the home cluster that had a pod here; pods of other nodes may be in it"},
}
