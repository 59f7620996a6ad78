// SPDX-License-Identifier: Apache-2.0

//go:build linux

package huaweicci

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// TestWorkloads runs common workloads with kubectl on the emulator of CCI 2.0.
func TestWorkloads(t *testing.T) {
	api := testapi.Start(t)
	var c *cloud
	remotetest.Workloads{
		Provider: "huaweicci",
		Env:      []string{"HUAWEICLOUD_SDK_AK=" + accessKey, "HUAWEICLOUD_SDK_SK=" + secretKey},
		Start: func(t *testing.T, images string) *remotetest.Worker {
			w := remotetest.StartContainers(t, api, images)
			c = startCloud(t, w, API20)
			return w
		},
		Config: func(_ *testing.T, cluster, _ string) string {
			return c.settings(cluster)
		},
		Refused: map[string]string{
			"Job with a sidecar":   "spec.initContainers[0].restartPolicy: the API of CCI has no field for it",
			"kubectl attach":       "CCI has no attach: use exec or logs",
			"kubectl attach -it":   "spec.containers[0].stdin: CCI has no attach",
			"kubectl port-forward": "CCI has no port-forward: reach the pod by its address in the VPC",
		},
	}.Run(t)
}
