// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContract runs the contract of providers on an emulator of CCI 2.0: a real API server and scheduler behind
// a proxy that checks signatures and fields, and translates to the names of CCI. Its node runs goroutines as
// containers.
func TestContract(t *testing.T) {
	c := startCloud(t, remotetest.StartWorker(t, testapi.Start(t)), API20)
	providertest.Run(t, c.harness())
	c.tookEverything(t)
}

// TestContractOfTheOlderAPI runs the same contract with API 1.0.
func TestContractOfTheOlderAPI(t *testing.T) {
	c := startCloud(t, remotetest.StartWorker(t, testapi.Start(t)), API10)
	h := c.harness()
	h.Subject = providertest.Subject{}
	providertest.Run(t, h)
	c.tookEverything(t)
}

func (c *cloud) harness() providertest.Harness {
	return providertest.Harness{
		Backend: c.backend,
		Container: func(_ *corev1.Pod, k *corev1.Container, p program.Program) error {
			k.Image, k.Args = "program", p.Args()
			return nil
		},
		Command:  func(p program.Program) ([]string, error) { return append([]string{"program"}, p.Args()...), nil },
		Patience: time.Minute, Every: 50 * time.Millisecond, Tick: time.Second, Parallel: 8,
		Subject:  providertest.Subject{Provider: "huaweicci", Backend: "an emulator of CCI 2.0 with a real API server, whose containers are goroutines"},
		Unproven: unproven(), Except: exceptions(),
	}
}

// tookEverything fails the test if the cloud refused a pod: the provider must refuse such a pod first.
func (c *cloud) tookEverything(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.refused) > 0 {
		t.Errorf("CCI refused pods: %q", c.refused)
	}
}

// config returns a configuration for this cloud, with a separate namespace.
func (c *cloud) config(cluster string) Config {
	conf := Config{
		Endpoint: c.url, CAFile: c.caFile, API: c.api, ProjectID: projectID, ClusterName: cluster,
		AccessKey: config.Literal(accessKey), SecretKey: config.Literal(secretKey),
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20"), corev1.ResourceMemory: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("200")},
	}
	if c.api == API20 {
		conf.Network = Network{DomainID: domainID, Subnets: []string{"subnet-1"}, SecurityGroups: []string{"group-1"}}
	}
	return conf
}

// settings returns a configuration file for this cloud, without keys. Its pods are small enough for a machine
// that also runs other programs.
func (c *cloud) settings(cluster string) string {
	return "apiVersion: " + APIVersion + "\nkind: " + Kind + "\nendpoint: " + c.url + "\ncaFile: " + c.caFile + "\nprojectID: " + projectID + "\nclusterName: " + cluster +
		"\nnetwork: {domainID: " + domainID + ", subnets: [subnet-1], securityGroups: [group-1]}\ndefaultResources: {cpu: 250m, memory: 512Mi}\n" +
		"capacity: {cpu: 20, memory: 100Gi, pods: 200}\n"
}

// prepare makes the objects that API 1.0 requires: a namespace with a network.
func (c *cloud) prepare(ctx context.Context, conf Config) error {
	if c.api == API20 {
		return nil
	}
	_, err := c.worker.API.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: conf.Namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.networks[conf.Namespace] = []network{{Metadata: metav1.ObjectMeta{Name: "net"}}}
	return nil
}

// backend returns CCI as the backend of one check's home cluster.
func (c *cloud) backend(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
	cluster := env.Namespace
	if c.api == API10 { // the namespaces of both may be in one API server
		cluster = "older-" + cluster
	}
	conf, err := c.config(cluster).completeConfig()
	if err == nil {
		err = c.prepare(ctx, conf)
	}
	if err != nil {
		return nil, err
	}
	access, err := conf.clientConfig()
	if err != nil {
		return nil, err
	}
	l := &remotetest.Line{}
	access = l.Through(access)
	return &providertest.Backend{
		Left: c.worker.Left(conf.Namespace), Kept: remotetest.Kept,
		Open: func(context.Context) (node.PodLifecycleHandler, error) {
			return newProvider(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, conf, access)
		},
		Close: func() error {
			return c.worker.API.Clear(context.Background(), conf.Namespace)
		},
		Outage: l.Outage, Throttle: l.Throttle, LoseAnswer: l.LoseNext,
		Instances: c.worker.Instances, Kill: c.worker.Kill, Lose: c.worker.Lose,
	}, nil
}

// exceptions returns the checks of features that only a container on a real machine has, and of features that
// CCI lacks.
func exceptions() map[string]string {
	except := map[string]string{}
	for _, name := range []string{
		"probes/network", "settings/capabilities", "settings/dns", "settings/fs-group", "settings/host-aliases", "settings/hostname",
		"settings/limits", "settings/read-only-root", "settings/run-as-user", "settings/sysctls",
	} {
		except[name] = "the containers of this test are goroutines, which have nothing of it"
	}
	for _, name := range []string{"attach/output", "port-forward/both-ways", "port-forward/refused"} {
		except[name] = "CCI has no such request, and the provider says so"
	}
	return except
}

// unproven returns the features whose fields are only passed on to CCI.
func unproven() map[capability.Feature]string {
	all := map[capability.Feature]string{
		capability.TokenVolumes: "no check of the contract has tokens; TestTokensOfHome reads one in a container",
	}
	for _, f := range []capability.Feature{
		capability.NetworkProbes, capability.ContainerLimits, capability.HostAliases, capability.DNS, capability.Hostname, capability.SharedProcesses,
		capability.RunAsUser, capability.FSGroup, capability.Capabilities, capability.ReadOnlyRoot, capability.Sysctls,
	} {
		all[f] = "CCI gets the fields as they are, by the tests of the mapping; the containers of this test are goroutines, without what they act on"
	}
	return all
}
