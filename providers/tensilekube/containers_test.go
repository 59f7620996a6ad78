// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tensilekube

import (
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContractInContainers runs the checks that need real containers. The node of the lower cluster is the built
// program with the provider process: a closed loop without a kubelet.
func TestContractInContainers(t *testing.T) {
	w := &worker{remotetest.StartContainers(t, testapi.Start(t), remotetest.ContractImage(t))}
	command := func(p program.Program) ([]string, error) {
		return append([]string{"/bin/contractprogram"}, p.Args()...), nil
	}
	providertest.Run(t, providertest.Harness{
		Backend: w.backend,
		Container: func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Command, c.Args, c.ImagePullPolicy = "contract", []string{"/bin/contractprogram"}, p.Args(), corev1.PullIfNotPresent
			return nil
		},
		Command: command, Patience: 2 * time.Minute, Every: 50 * time.Millisecond, Parallel: 4,
		Only:   regexp.MustCompile(`^settings/|^probes/network$|^creation/(runs|init-order|sidecar)$|^(environment|exec|files|hooks|logs|port-forward)/`),
		Except: map[string]string{"settings/stop-signal": "the API server of the lower cluster drops the field without the feature gate ContainerStopSignals"},
	})
}

// TestWorkloads runs common workloads with kubectl.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	api := testapi.Start(t)
	var w *worker
	remotetest.Workloads{
		Provider: "tensilekube", Always: true,
		Start: func(t *testing.T, images string) *remotetest.Worker {
			w = &worker{remotetest.StartContainers(t, api, images)}
			return w.Worker
		},
		Config: func(_ *testing.T, cluster, _ string) string {
			return "apiVersion: " + APIVersion + "\nkind: " + Kind + "\nkubeconfig: " + api.KubeconfigPath + "\nclusterName: " + cluster + "\n" + w.Settings()
		},
	}.Run(t)
}
