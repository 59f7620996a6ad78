// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestNodes(t *testing.T) {
	const off = "--disable-kubelet-api"
	want := []string{"a", "vk-08", "vk-09", "vk-10"}
	for _, tc := range []struct {
		name string
		args []string
		env  map[string]string
		file string
	}{
		{"flag", []string{off, "--nodes=a,vk-[08-10]"}, nil, ""},
		{"flags", []string{off, "--nodes=a", "--nodes=vk-[08-10]"}, nil, ""},
		{"environment", []string{off}, map[string]string{"VKUBELET_NODES": "a,vk-[08-10]"}, ""},
		{"file", []string{off}, nil, fileHead + "nodes: [a, 'vk-[08-10]']\n"},
		{"one value in a file", []string{off}, nil, fileHead + "nodes: a,vk-[08-10]\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := resolveWith(t, tc.args, tc.env, tc.file)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(r.nodeNames, want) || r.KubeAPIQPS != 5000 || r.KubeAPIBurst != 0 {
				t.Errorf("got %q with QPS %v, burst %d; want %q with the default limits", r.nodeNames, r.KubeAPIQPS, r.KubeAPIBurst, want)
			}
			printed, err := r.print()
			if err != nil {
				t.Fatal(err)
			}
			again, err := resolveWith(t, nil, nil, string(printed))
			if err != nil || !slices.Equal(again.nodeNames, want) {
				t.Errorf("what is printed is another file: %v\n%s", err, printed)
			}
		})
	}
	for want, args := range map[string][]string{
		"--nodes (flag --nodes) contradicts --nodename (flag --nodename)": {off, "--nodes=a", "--nodename=b"},
		"--share-nodes g: want --nodes":                                   {off, "--share-nodes=g"},
		"it contradicts --drain-on-exit":                                  {off, "--nodes=a", "--share-nodes=g", "--drain-on-exit"},
		"it contradicts --disable-lease-guard":                            {off, "--nodes=a", "--share-nodes=g", "--disable-lease-guard"},
		`node names "a[1-": a [ has no ] after it`:                        {off, "--nodes=a[1-"},
		`node name "a" comes twice`:                                       {off, "--nodes=a,a"},
	} {
		if _, err := resolveWith(t, args, nil, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", args, err, want)
		}
	}
	r, err := resolveWith(t, []string{off, "--nodes=a,b", "--kube-api-qps=7"}, nil, "")
	if err != nil || r.KubeAPIQPS != 7 {
		t.Errorf("a limit that was set becomes %v (%v)", r.KubeAPIQPS, err)
	}
}

// TestRunManyNodes runs a program with several nodes from its start to its end.
func TestRunManyNodes(t *testing.T) {
	api := &apiServer{objects: map[string]runtime.Object{}}
	kubeconfig := startAPIServer(t, api)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, done := start(ctx, "--provider=empty", "--kubeconfig="+kubeconfig, "--nodes=n[1-3]", "--node-ip=127.0.0.1",
		"--listen-address=127.0.0.1", "--port=0", "--self-signed-serving-certificate", "--log-format=json")
	log.waitFor(t, "Node is ready", done)
	ports := map[string]bool{}
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("n%d", i)
		n := api.nodeCalled(name)
		if n == nil || n.Labels["configured"] != "yes" || n.Labels["kubernetes.io/hostname"] != name || n.Status.Addresses[1].Address != name {
			t.Fatalf("node %s is %+v", name, n)
		}
		ports[fmt.Sprint(n.Status.DaemonEndpoints.KubeletEndpoint.Port)] = true
	}
	if len(ports) != 1 || ports["0"] {
		t.Errorf("the nodes name the ports %v, want one and the same", ports)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("the program ended with %d:\n%s", code, log)
	}
}
