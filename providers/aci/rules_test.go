// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	secretConfig "github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/aci"
)

// objectsOf are the objects that a pod refers to, and its logins.
type objectsOf struct {
	configMap map[string]string
	secret    map[string][]byte
	logins    []node.RegistryCredential
}

// ConfigMap implements node.PodObjects.
func (o objectsOf) ConfigMap(context.Context, *corev1.Pod, string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: o.configMap}, nil
}

// Secret implements node.PodObjects.
func (o objectsOf) Secret(context.Context, *corev1.Pod, string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: o.secret}, nil
}

// Container implements node.PodObjects.
func (o objectsOf) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return list[i].DeepCopy(), nil
			}
		}
	}
	return nil, fmt.Errorf("no container %s", name)
}

// PullCredentials implements node.PullCredentials.
func (o objectsOf) PullCredentials(context.Context, *corev1.Pod) ([]node.RegistryCredential, error) {
	return o.logins, nil
}

// published is a published pod, with the configuration and the objects to run it.
type published struct {
	pod    func(pod *corev1.Pod, c *corev1.Container)
	config func(c *Config)
	has    objectsOf
}

// create creates the pod at the emulator, which enforces the rules of ACI, and returns the new group.
func (p published) create(t *testing.T) (*aci.ContainerGroupPropertiesProperties, error) {
	t.Helper()
	a := testAzure(t)
	of := a.provider(t, p.config).run(t)
	of.UsePodObjects(p.has)
	of.UsePullCredentials(p.has)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "u-1", Annotations: map[string]string{}}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "regs"}},
		Containers: []corev1.Container{{Name: "test", Image: "demo", Command: []string{"program"}}},
	}}
	if p.pod != nil {
		p.pod(pod, &pod.Spec.Containers[0])
	}
	if err := of.CreatePod(t.Context(), pod); err != nil {
		return nil, err
	}
	group, err := of.driver.client.get(t.Context(), of.driver.groups.owner.Name(identity.Of(pod)))
	if err != nil {
		t.Fatal(err)
	}
	return group.Properties, nil
}

// refused checks that the provider refuses the pod with the path of a field, without a request to ACI.
func (p published) refused(t *testing.T, path string) {
	t.Helper()
	_, err := p.create(t)
	if !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("got %v, want an error of the kind invalid-input that begins with %s", err, path)
	}
}

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// noNetwork removes the subnet from a configuration.
func noNetwork(c *Config) { c.Network = Network{} }

func public(c *Config) { c.Network = Network{Public: new(true)} }

// TestPublishedC1BurstablePodRuns: virtual-kubelet/azure-aci#17, virtual-kubelet/azure-aci#149,
// virtual-kubelet/virtual-kubelet#153, MicrosoftDocs/azure-docs#29780. ACI refuses a limit above the sum of
// requests, so memory is raised to the limit, and CPU is capped at the sum.
func TestPublishedC1BurstablePodRuns(t *testing.T) {
	for name, c := range map[string]struct {
		resources   []corev1.ResourceRequirements
		cpu, memory float64 // the request of the first container
		limit       float64 // of its CPU
	}{
		"the pod of azure-aci#17": {[]corev1.ResourceRequirements{{Requests: list("1.2", "0.9G"), Limits: list("1.5", "0.9G")}}, 1.2, 0.9, 1.2},
		"the pod of azure-aci#149": {[]corev1.ResourceRequirements{
			{Requests: list("100m", "100M"), Limits: list("1.5", "1G")}, {Requests: list("200m", "100M")},
		}, 0.1, 1, 0.3},
		"a limit that the group has room for": {[]corev1.ResourceRequirements{
			{Requests: list("1", "1G"), Limits: list("1500m", "1G")}, {Requests: list("1", "1G")},
		}, 1, 1, 1.5},
		"a limit alone": {[]corev1.ResourceRequirements{{Limits: list("500m", "512Mi")}}, 0.5, 0.6, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			group, err := published{pod: func(pod *corev1.Pod, first *corev1.Container) {
				for i, r := range c.resources {
					if i > 0 {
						pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Image: "demo", Command: first.Command})
					}
					pod.Spec.Containers[i].Resources = r
				}
			}}.create(t)
			if err != nil {
				t.Fatal(err)
			}
			got := group.Containers[0].Properties.Resources
			if *got.Requests.CPU != c.cpu || *got.Requests.MemoryInGB != c.memory || *got.Limits.CPU != c.limit {
				t.Errorf("got requests of %g CPUs and %g GB and a limit of %g CPUs, want %g, %g and %g",
					*got.Requests.CPU, *got.Requests.MemoryInGB, *got.Limits.CPU, c.cpu, c.memory, c.limit)
			}
		})
	}
}

// dockerAndTwo are the logins of a Secret with Docker Hub, a registry of Azure, and one with a port.
var dockerAndTwo = objectsOf{logins: []node.RegistryCredential{
	{Registry: "private.example.com:5000", Username: "u3", Password: "not-real-3"},
	{Registry: "https://index.docker.io/v1/", Username: "u1", Password: "not-real-1"},
	{Registry: "*.azurecr.io", Username: "u2", Password: "not-real-2"},
}}

// TestPublishedC2LoginsAreThoseOfTheImages: docker/cli#3610, MoreImageRegistryCredentialsThanContainers.
func TestPublishedC2LoginsAreThoseOfTheImages(t *testing.T) {
	for images, want := range map[string][]string{
		"demo":                    {"index.docker.io u1"},
		"example.azurecr.io/demo": {"example.azurecr.io u2"},
		"demo, library/other":     {"index.docker.io u1"},
		"demo, example.azurecr.io/demo, quay.io/x/y": {"index.docker.io u1", "example.azurecr.io u2"},
		"quay.io/x/y": {},
	} {
		group, err := published{has: dockerAndTwo, pod: func(pod *corev1.Pod, first *corev1.Container) {
			for i, image := range strings.Split(images, ", ") {
				if i > 0 {
					pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Command: first.Command})
				}
				pod.Spec.Containers[i].Image = image
			}
		}}.create(t)
		if err != nil {
			t.Errorf("%s: %v", images, err)
			continue
		}
		got := []string{}
		for _, c := range group.ImageRegistryCredentials {
			got = append(got, *c.Server+" "+*c.Username)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got the logins %q, want %q", images, got, want)
		}
	}
}

// TestPublishedC3RegistryWithAPort: virtual-kubelet/azure-aci#573, Azure/azure-cli#11469, InvalidImageRegistryServer.
func TestPublishedC3RegistryWithAPort(t *testing.T) {
	group, err := published{
		has: objectsOf{logins: []node.RegistryCredential{{Registry: "gitlab.example:443", Username: "u", Password: "p"}}},
		pod: func(_ *corev1.Pod, c *corev1.Container) { c.Image = "gitlab.example:443/team/demo:1" },
	}.create(t)
	if err != nil {
		t.Fatal(err)
	}
	if server, image := *group.ImageRegistryCredentials[0].Server, *group.Containers[0].Properties.Image; server != "gitlab.example" || image != "gitlab.example/team/demo:1" {
		t.Errorf("got the server %s and the image %s, want those without the port that HTTPS has anyway", server, image)
	}
	published{has: dockerAndTwo, pod: func(_ *corev1.Pod, c *corev1.Container) { c.Image = "private.example.com:5000/demo" }}.refused(t, "spec.containers[0].image")
}

// TestPublishedC4OneLoginForARegistry: microsoft/rest-api-fuzz-testing#6.
func TestPublishedC4OneLoginForARegistry(t *testing.T) {
	two := objectsOf{logins: []node.RegistryCredential{
		{Registry: "registry.example/team-a", Username: "a", Password: "p"}, {Registry: "registry.example/team-b", Username: "b", Password: "p"},
	}}
	published{has: two, pod: func(pod *corev1.Pod, c *corev1.Container) {
		c.Image = "registry.example/team-a/x"
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "b", Image: "registry.example/team-b/x", Command: c.Command})
	}}.refused(t, "spec.containers[1].image")
}

// TestPublishedC5NamesOfVariables: Azure/aci-deploy#29, Azure/aci-deploy#89,
// InvalidContainerEnvironmentVariable. A name in the pod is refused before any object is read, and a name from a
// key as soon as the key is read.
func TestPublishedC5NamesOfVariables(t *testing.T) {
	for _, name := range []string{"discovery.type", "my-name", "1ST", "É", "a b"} {
		named := func(pod *corev1.Pod, c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "_MY_NAME2", Value: "x"}, {Name: name}}
		}
		published{pod: named}.refused(t, "spec.containers[0].env[1]")
		pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{}, {}}}}
		named(pod, &pod.Spec.InitContainers[1])
		if err := refuse(pod); !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), "spec.initContainers[1].env[1]: ") {
			t.Errorf("%s: got %v without a service", name, err)
		}
		r := whole()
		c := r.Pod.Spec.Containers[0].DeepCopy() // the container with the variables of its keys
		c.Env = append([]corev1.EnvVar{{Name: name, Value: "x"}}, c.Env...)
		r.Containers[c.Name] = c
		if _, err := testMapping(t).group(r); !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), "spec.containers[0].envFrom: ") {
			t.Errorf("%s: got %v for a key", name, err)
		}
	}
	for prefix, path := range map[string]string{"app.": "spec.containers[0].envFrom[0].prefix", "1": "spec.containers[0].envFrom[0].prefix"} {
		published{pod: func(_ *corev1.Pod, c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{{Prefix: prefix}} }}.refused(t, path)
	}
}

// TestPublishedC16VariablesWithoutValues: virtual-kubelet/virtual-kubelet#296, #297, Azure/aci-connector-k8s#43.
// ACI refuses variables without values, and azure-aci leaves them out.
func TestPublishedC16VariablesWithoutValues(t *testing.T) {
	group, err := published{pod: func(pod *corev1.Pod, c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "SOME_EMPTY_ENV"}, {Name: "A", Value: "x"}}
		pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "demo", Command: c.Command, Env: []corev1.EnvVar{{Name: "EMPTY"}}}}
	}}.create(t)
	if err != nil {
		t.Fatal(err)
	}
	if env := group.Containers[0].Properties.EnvironmentVariables; len(env) != 1 || *env[0].Name != "A" || len(group.InitContainers[0].Properties.EnvironmentVariables) != 0 {
		t.Errorf("got the variables %v, want A alone", env)
	}
}

// TestPublishedC6FilesThatAreEmpty: virtual-kubelet/azure-aci#175, SecretValueNotSpecified. The Secret is that
// of GitLab's runner.
func TestPublishedC6FilesThatAreEmpty(t *testing.T) {
	secret := objectsOf{secret: map[string][]byte{"runner-registration-token": []byte("x"), "runner-token": nil}}
	mount := func(items ...corev1.KeyToPath) func(pod *corev1.Pod, c *corev1.Container) {
		return func(pod *corev1.Pod, c *corev1.Container) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "init-runner-secrets", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "gitlab-runner", Items: items}}}}
			c.VolumeMounts = []corev1.VolumeMount{{Name: "init-runner-secrets", MountPath: "/init-secrets"}}
		}
	}
	published{has: secret, pod: mount()}.refused(t, "spec.volumes[0]")
	if _, err := (published{has: secret, pod: mount(corev1.KeyToPath{Key: "runner-registration-token", Path: "token"})}).create(t); err != nil {
		t.Errorf("without the file that is empty: %v", err)
	}
}

// TestPublishedC7PortsAreDeclaredOnce: docker-archive/cloud-integration-beta#5,
// hashicorp/terraform-provider-azurerm#11102, virtual-kubelet/azure-aci#353. An address has at most five ports:
// MicrosoftDocs/azure-docs#101382.
func TestPublishedC7PortsAreDeclaredOnce(t *testing.T) {
	http := corev1.ContainerPort{ContainerPort: 80}
	both := func(pod *corev1.Pod, c *corev1.Container) {
		c.Ports = []corev1.ContainerPort{http, {ContainerPort: 80, Protocol: corev1.ProtocolUDP}}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "other", Image: "demo", Command: c.Command, Ports: []corev1.ContainerPort{{ContainerPort: 81}, http}})
	}
	group, err := published{pod: both, config: public}.create(t)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range group.IPAddress.Ports {
		got = append(got, fmt.Sprint(*p.Port, " ", *p.Protocol))
	}
	if want := []string{"80 TCP", "80 UDP", "81 TCP"}; !slices.Equal(got, want) {
		t.Errorf("got the ports %q, want %q", got, want)
	}
	if _, err := (published{pod: both}).create(t); err != nil {
		t.Errorf("in a subnet: %v", err)
	}
	published{config: public, pod: func(_ *corev1.Pod, c *corev1.Container) {
		for port := range int32(6) {
			c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: 80 + port})
		}
	}}.refused(t, "spec.containers")
}

// TestPublishedC8LabelOfAName: derekbekoe/vscode-spot#38. A label has 5 to 63 characters and begins with a
// letter.
func TestPublishedC8LabelOfAName(t *testing.T) {
	const annotation = "virtualkubelet.io/dnsnamelabel"
	for label, good := range map[string]bool{"node": false, "1node": false, "nodes": true, "node-1": true} {
		p := published{
			config: func(c *Config) { public(c); c.Annotations = []string{annotation} },
			pod: func(pod *corev1.Pod, c *corev1.Container) {
				pod.Annotations[annotation], c.Ports = label, []corev1.ContainerPort{{ContainerPort: 80}}
			},
		}
		if !good {
			p.refused(t, "metadata.annotations["+annotation+"]")
		} else if _, err := p.create(t); err != nil {
			t.Errorf("%s: %v", label, err)
		}
	}
}

// TestPublishedC9SpotHasNoNetwork: MicrosoftDocs/SupportArticles-docs: error-codes-spot-container-creation.md,
// SpotPriorityContainerGroupNotSupportedForInboundConnectivity and SpotPriorityContainerGroupNotSupportedInSku.
func TestPublishedC9SpotHasNoNetwork(t *testing.T) {
	const priority, sku = "virtual-kubelet.io/priority", "virtual-kubelet.io/container-sku"
	allow := func(c *Config) { c.Annotations = []string{priority, sku} }
	spot := func(pod *corev1.Pod, c *corev1.Container) {
		pod.Annotations[priority], c.Ports = "Spot", []corev1.ContainerPort{{ContainerPort: 80}}
	}
	const path = "metadata.annotations[" + priority + "]"
	published{pod: spot, config: allow}.refused(t, path)
	published{pod: spot, config: func(c *Config) { allow(c); public(c) }}.refused(t, path)
	published{pod: spot, config: func(c *Config) { allow(c); noNetwork(c); c.Zones = []string{"1"} }}.refused(t, path)
	published{config: func(c *Config) { allow(c); noNetwork(c); c.Priority = "Spot" }, pod: func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Annotations[sku] = "Dedicated"
	}}.refused(t, "metadata.annotations["+sku+"]")
	if _, err := (published{pod: spot, config: func(c *Config) { allow(c); noNetwork(c) }}).create(t); err != nil {
		t.Errorf("without a network: %v", err)
	}
	for name, change := range map[string]func(*Config){
		"a subnet": func(c *Config) { c.Network = Network{VNet: "v", Subnet: "s"} }, "a public address": public, "a zone": func(c *Config) { c.Zones = []string{"1"} },
	} {
		conf := good()
		conf.Priority = "Spot"
		change(&conf)
		if _, err := conf.complete(); err == nil || !strings.Contains(err.Error(), "priority: Spot") {
			t.Errorf("a configuration with %s: got %v, want an error about the priority", name, err)
		}
	}
}

// TestPublishedC10Volumes: a group has at most 20 volumes (MicrosoftDocs/azure-compute-docs:
// container-instances-resource-and-quota-limits.md), and a path has no colon (Azure/azure-cli#26591).
func TestPublishedC10Volumes(t *testing.T) {
	empty := func(n int) (out []corev1.Volume) {
		for i := range n {
			out = append(out, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		}
		return out
	}
	published{pod: func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.Volumes = empty(21) }}.refused(t, "spec.volumes[20]")
	if _, err := (published{pod: func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.Volumes = empty(20) }}).create(t); err != nil {
		t.Errorf("20 volumes: %v", err)
	}
	published{pod: func(pod *corev1.Pod, c *corev1.Container) {
		pod.Spec.Volumes, c.VolumeMounts = empty(1), []corev1.VolumeMount{{Name: "v0", MountPath: "/a:b"}}
	}}.refused(t, "spec.containers[0].volumeMounts[0].mountPath")
}

// TestPublishedC11GroupsLargerThanAny: MicrosoftDocs/azure-docs#24776. ACI answers that the resource is not
// available at this moment.
func TestPublishedC11GroupsLargerThanAny(t *testing.T) {
	asks := func(cpu, memory string) func(*corev1.Pod, *corev1.Container) {
		return func(_ *corev1.Pod, c *corev1.Container) { c.Resources.Requests = list(cpu, memory) }
	}
	published{pod: asks("32", "1G")}.refused(t, "spec.containers")
	published{pod: asks("1", "241G")}.refused(t, "spec.containers")
	published{pod: asks("5", "1G"), config: func(c *Config) { noNetwork(c); c.Priority = "Spot" }}.refused(t, "spec.containers")
	if _, err := (published{pod: asks("31", "240G")}).create(t); err != nil {
		t.Errorf("the largest: %v", err)
	}
}

// TestPublishedC12BadRequestIsTheEnd: virtual-kubelet/azure-aci#175 and #566 report 17 attempts. A bad request
// stays a bad request, whatever its code, so the pod ends. A missing image may appear, and a subnet may be
// repaired, so these do not end the pod.
func TestPublishedC12BadRequestIsTheEnd(t *testing.T) {
	for code, ends := range map[string]bool{
		"ContainerLimitGreaterThanContainerGroupTotalRequest": true, "CodeOfTomorrow": true,
		"InaccessibleImage": false, "SubnetMissingRequiredDelegation": false,
		// These are general codes of Azure Resource Manager, not published for container groups. A larger quota
		// or an operator can remove the cause of each, so none ends a pod.
		"QuotaExceeded": false, "OperationNotAllowed": false, "SkuNotAvailable": false, "InvalidResourceReference": false, "SubscriptionNotRegistered": false,
		"InUseSubnetCannotBeUpdated": false, "FailedIdentityOperation": false, "DnsNameLabelNotAvailable": false,
		"": false, // of a proxy
	} {
		a := testAzure(t)
		p := a.provider(t, nil).run(t)
		p.UsePodObjects(objectsOf{})
		a.front.Break(emulator.Fault{Operations: []string{"Create"}, Answer: refuses(http.StatusBadRequest, code, nil)})
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "u-1"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "test", Image: "demo", Command: []string{"program"}}},
		}}
		if err := p.CreatePod(t.Context(), pod); err == nil || errdefs.IsInvalidInput(err) != ends {
			t.Errorf("%s: got %v, which ends the pod: %t, want %t", code, err, errdefs.IsInvalidInput(err), ends)
		}
	}
}

// TestPublishedC17AnswersThatEndAPod checks that an answer ends a pod if, and only if, no later request can
// succeed. The answers are those of the emulator.
func TestPublishedC17AnswersThatEndAPod(t *testing.T) {
	answers := emulated.Answers()
	for _, r := range emulated.Rules() {
		fate := emulated.Never
		if r.Status != http.StatusBadRequest {
			fate = emulated.Later
		}
		answers = append(answers, emulated.Answer{Source: r.Source, Status: r.Status, Code: r.Code, Fate: fate})
	}
	a := testAzure(t)
	p := a.provider(t, nil).run(t)
	for i, answer := range answers {
		mend := a.front.Break(emulator.Fault{Operations: []string{"Create"}, Answer: refuses(answer.Status, answer.Code, nil)})
		pod := programPod(fmt.Sprint("u-", i), stays)
		err := p.CreatePod(t.Context(), pod)
		mend()
		if ends := answer.Fate == emulated.Never; err == nil || errdefs.IsInvalidInput(err) != ends || errdefs.IsNotFound(err) {
			t.Errorf("%d %s: got %v, which ends the pod: %t, want %t: %s", answer.Status, answer.Code, err, errdefs.IsInvalidInput(err), ends, answer.Source)
		}
		if answer.Fate != emulated.Made {
			continue
		}
		group, err := p.driver.client.create(t.Context(), p.driver.groups.owner.Name(identity.Of(pod)), groupOf(t, p, pod))
		if err != nil || group == nil {
			t.Fatal(err)
		}
		mend = a.front.Break(emulator.Fault{Operations: []string{"Create"}, Answer: refuses(answer.Status, answer.Code, nil)})
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Errorf("%s: the group is there, and the pod is not: %v", answer.Code, err)
		}
		mend()
	}
}

// TestPublishedC18NamesOfTheCluster: virtual-kubelet/azure-aci#176, #549. Without a kube-proxy in its group, a
// pod reaches no Service address.
func TestPublishedC18NamesOfTheCluster(t *testing.T) {
	dns := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-dns"}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.10", ClusterIPs: []string{"10.0.0.10"}}}
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	if err := services.Add(dns); err != nil {
		t.Fatal(err)
	}
	account := t.TempDir()
	for name, text := range map[string]string{"ca.crt": "ca", "token": "token-1\n"} {
		if err := os.WriteFile(filepath.Join(account, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	create := func(account string, policy corev1.DNSPolicy, network Network) (*aci.ContainerGroupPropertiesProperties, error) {
		a := testAzure(t)
		network.VNet, network.Subnet = "net", "pods"
		p := a.provider(t, func(c *Config) { c.Network = network }).run(t)
		p.driver.services, p.driver.account = corev1listers.NewServiceLister(services), account
		var sent *aci.ContainerGroup
		a.front.Break(emulator.Fault{Operations: []string{"Create"}, Times: 1, Answer: func(w http.ResponseWriter, r *http.Request) {
			data, err := io.ReadAll(r.Body)
			if err == nil {
				err = json.Unmarshal(data, &sent)
			}
			if err != nil {
				t.Error(err)
			}
			http.Error(w, `{"error": {"code": "InvalidParameter", "message": "the token is token-1"}}`, http.StatusBadRequest)
		}})
		pod := programPod("u-1", stays)
		pod.Spec.DNSPolicy = policy
		err := p.CreatePod(t.Context(), pod)
		if err != nil && network.KubeProxy.isSet() && strings.Contains(err.Error(), "token-1") {
			t.Errorf("a token is shown: %v", err)
		}
		if sent == nil {
			return nil, err
		}
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Errorf("the emulator refuses it: %v", err)
		}
		group, err := p.driver.client.get(t.Context(), p.driver.groups.owner.Name(identity.Of(pod)))
		if err != nil {
			t.Fatal(err)
		}
		if e := group.Properties.Extensions; len(e) > 0 && e[0].Properties.ProtectedSettings != nil {
			t.Errorf("the emulator shows %v", e[0].Properties.ProtectedSettings)
		}
		return sent.Properties, nil
	}
	of := func(e *aci.DeploymentExtensionSpec) (settings map[string]any, kubeconfig string) {
		data, err := base64.StdEncoding.DecodeString(e.Properties.ProtectedSettings.(map[string]any)["kubeConfig"].(string))
		if err != nil || *e.Name != "kube-proxy" || *e.Properties.ExtensionType != "kube-proxy" || *e.Properties.Version != "1.0" {
			t.Errorf("got the extension %v, %v", e, err)
		}
		return e.Properties.Settings.(map[string]any), string(data)
	}

	if _, err := create(account, "", Network{ClusterDNS: "10.0.0.10"}); err == nil || errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), "network.clusterDNS: ") || !strings.Contains(err.Error(), "kube-system/kube-dns") {
		t.Errorf("the address of a Service: got %v, want a way out that does not end the pod", err)
	}
	for name, network := range map[string]Network{"the address of a Service for a pod that does not ask it": {ClusterDNS: "10.0.0.10"}, "another address": {ClusterDNS: "10.1.0.9"}} {
		policy := corev1.DNSClusterFirst
		if network.ClusterDNS == "10.0.0.10" {
			policy = corev1.DNSDefault
		}
		if group, err := create(account, policy, network); err != nil || len(group.Extensions) != 0 {
			t.Errorf("%s: got %v, %v", name, group, err)
		}
	}
	group, err := create(account, "", Network{ClusterDNS: "10.0.0.10", KubeProxy: KubeProxy{APIServer: "https://cluster.example:443"}})
	if err != nil || len(group.Extensions) != 1 || group.DNSConfig == nil || *group.DNSConfig.NameServers[0] != "10.0.0.10" {
		t.Fatalf("as azure-aci: got %+v, %v", group, err)
	}
	settings, kubeconfig := of(group.Extensions[0])
	if settings["clusterCidr"] != "10.240.0.0/16" || settings["kubeVersion"] != "v1.9.10" {
		t.Errorf("got the settings %v", settings)
	}
	config, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil || config.Clusters["virtual-kubelet"].Server != "https://cluster.example:443" || string(config.Clusters["virtual-kubelet"].CertificateAuthorityData) != "ca" ||
		config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo].Token != "token-1" {
		t.Errorf("got %s, %v", kubeconfig, err)
	}
	const own = `{"kind": "Config", "apiVersion": "v1", "users": [{"name": "u", "user": {"token": "token-1"}}]}`
	group, err = create("", "", Network{KubeProxy: KubeProxy{APIServer: "x", ClusterCIDR: "10.9.0.0/16", Kubeconfig: secretConfig.Literal(own)}})
	if err != nil {
		t.Fatal(err)
	}
	if settings, kubeconfig := of(group.Extensions[0]); kubeconfig != own || settings["clusterCidr"] != "10.9.0.0/16" {
		t.Errorf("a kubeconfig: got %q, %v", kubeconfig, settings)
	}
	if _, err := create(t.TempDir(), "", Network{KubeProxy: KubeProxy{APIServer: "x"}}); err == nil || errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "name kubeconfig") {
		t.Errorf("no service account: got %v", err)
	}
}

// groupOf returns the group of a pod.
func groupOf(t *testing.T, p *provider, pod *corev1.Pod) *aci.ContainerGroup {
	t.Helper()
	r := resolve(pod)
	r.Logins, r.Tags = nil, p.driver.groups.owner.Tags(identity.Of(pod))
	group, err := p.driver.mapping.group(r)
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// TestPublishedC13InlineVolumesOfAzureFiles: virtual-kubelet/azure-aci: e2e/fixtures/csi-driver.yml, with the
// mount options from the example of an inline volume in the driver's guide.
func TestPublishedC13InlineVolumesOfAzureFiles(t *testing.T) {
	account := objectsOf{secret: map[string][]byte{accountName: []byte("acc"), accountKey: []byte("a2V5")}}
	inline := func(driver string, attributes map[string]string) func(pod *corev1.Pod, c *corev1.Container) {
		return func(pod *corev1.Pod, c *corev1.Container) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "azure", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: driver, ReadOnly: new(true), VolumeAttributes: attributes}}}}
			c.VolumeMounts = []corev1.VolumeMount{{Name: "azure", MountPath: "/mnt/azure"}}
		}
	}
	good := map[string]string{"secretName": "csidriversecret", "shareName": "vncsidriversharename", "mountOptions": "dir_mode=0777,file_mode=0777"}
	group, err := published{has: account, pod: inline("file.csi.azure.com", good)}.create(t)
	if err != nil {
		t.Fatal(err)
	}
	if v := group.Volumes[0].AzureFile; v == nil || *v.ShareName != "vncsidriversharename" || *v.StorageAccountName != "acc" || v.ReadOnly == nil || !*v.ReadOnly {
		t.Errorf("got the volume %+v, want the share of Azure Files, read only", v)
	}
	for path, c := range map[string]struct {
		driver     string
		attributes map[string]string
	}{
		"driver":                     {"disk.csi.azure.com", good},
		"volumeAttributes":           {"file.csi.azure.com", map[string]string{"shareName": "x"}},
		"volumeAttributes[protocol]": {"file.csi.azure.com", map[string]string{"shareName": "x", "secretName": "y", "protocol": "nfs"}},
	} {
		published{has: account, pod: inline(c.driver, c.attributes)}.refused(t, "spec.volumes[0].csi."+path)
	}
	if !(Config{}).Capabilities().Has(capability.CSIVolumes) {
		t.Error("pods with volumes of the driver are refused before they are looked at")
	}
}

// TestPublishedC14PublicAddressAsAzureACI: without a subnet, virtual-kubelet/azure-aci 1.6.4 gives each pod with
// ports a public address.
func TestPublishedC14PublicAddressAsAzureACI(t *testing.T) {
	file := filepath.Join(t.TempDir(), "aci.toml")
	if err := os.WriteFile(file, []byte("Region = \"westeurope\"\nResourceGroup = \"pods\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	complete := func(path string, variables map[string]string) Config {
		t.Helper()
		for _, name := range []string{"ACI_RESOURCE_GROUP", "ACI_REGION", "ACI_VNET_NAME", "ACI_SUBNET_NAME", "VKUBELET_ACI_NETWORK_PUBLIC"} {
			t.Setenv(name, variables[name])
		}
		t.Setenv("AZURE_SUBSCRIPTION_ID", "sub-1")
		t.Setenv("ACI_CLUSTER_NAME", "home-1")
		c, err := LoadConfig(path)
		if err == nil {
			c, err = c.complete()
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	azure := map[string]string{"ACI_RESOURCE_GROUP": "pods", "ACI_REGION": "westeurope"}
	if !complete(file, nil).Network.isPublic() {
		t.Error("a file of azure-aci without a subnet gives no public addresses")
	}
	if !complete("", azure).Network.isPublic() {
		t.Error("variables of azure-aci without a subnet give no public addresses")
	}
	if complete("", map[string]string{"ACI_RESOURCE_GROUP": "pods", "ACI_REGION": "westeurope", "ACI_VNET_NAME": "v", "ACI_SUBNET_NAME": "s"}).Network.isPublic() {
		t.Error("a subnet of azure-aci gives public addresses")
	}
	if complete("", map[string]string{"ACI_RESOURCE_GROUP": "pods", "ACI_REGION": "westeurope", "VKUBELET_ACI_NETWORK_PUBLIC": "false"}).Network.isPublic() {
		t.Error("public addresses are given where the configuration says no")
	}
	if c, err := good().complete(); err != nil || c.Network.isPublic() {
		t.Errorf("a configuration of this provider gives public addresses without being asked, or %v", err)
	}
}
