// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// scheduler refuses pods by their name, as a batch system does.
type scheduler struct{ *inprocess.Provider }

// CreatePod implements node.PodLifecycleHandler.
func (s scheduler) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	const words = "sbatch: error: invalid partition specified: gpu"
	switch pod.Name {
	case "busy":
		return errors.New(words)
	case "wrong":
		return errdefs.InvalidInput(words)
	}
	return s.Provider.CreatePod(ctx, pod)
}

// TestSubmissionErrorReachesThePod checks that the error of a batch system that refuses a job is in an event and
// in the status of its pod, with the reason that a kubelet uses for an invalid pod.
func TestSubmissionErrorReachesThePod(t *testing.T) {
	api := testapi.Start(t)
	namespace, name := api.Namespace(t), api.NodeName(t)
	h := &home{Home: remotetest.NewHome(t, name), dir: shortDir(t), cloud: inprocess.New(t.Context())}
	runner := cli.Provider{Name: "batch", New: func(_ context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
		return scheduler{inprocess.Open(h.cloud, inprocess.Objects{ConfigMaps: in.ConfigMaps, Secrets: in.Secrets})}, nil
	}}
	startPlugin(t, h.dir, runner, "")
	h.startServer()
	n, _ := remotetest.RunNode(t, api, name, func(in cli.ProviderInput) (remotetest.NodeProvider, error) {
		return openProvider(in, Config{URL: h.url})
	})
	if err := n.WaitReady(t.Context(), remotetest.Patience); err != nil {
		t.Fatal(err)
	}
	pods := api.Client.CoreV1().Pods(namespace)
	for _, name := range []string{"busy", "wrong", "fine"} {
		pod := h.Pod(namespace, name, stays())
		pod.UID, pod.Spec.ServiceAccountName, pod.Spec.AutomountServiceAccountToken = "", "default", ptr.To(false)
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, reason := range map[string]string{"busy": "ProviderFailed", "wrong": "CreateContainerConfigError"} {
		remotetest.Until(t, name+": the words of the batch system are in the status", func() (bool, string) {
			pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			said := pod.Status.Reason // the pod is retried soon
			if len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Waiting != nil {
				said = pod.Status.ContainerStatuses[0].State.Waiting.Reason
			}
			return said == reason && pod.Status.Phase == corev1.PodPending && strings.Contains(pod.Status.Message, "sbatch: error: invalid partition"), pod.Status.String()
		})
		remotetest.Until(t, name+": the words of the batch system are in an event", func() (bool, string) {
			list, err := api.Client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,involvedObject.name=" + name})
			if err != nil {
				return false, err.Error()
			}
			return slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
				return e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, "sbatch: error: invalid partition")
			}), "it is not"
		})
	}
	remotetest.Until(t, "another pod runs", func() (bool, string) {
		pod, err := pods.Get(t.Context(), "fine", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning, "it does not"
	})
}
