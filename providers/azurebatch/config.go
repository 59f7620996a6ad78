// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// APIVersion and Kind are the type of this provider's configuration file.
const (
	APIVersion = "azurebatch.virtual-kubelet.io/v1alpha1"
	Kind       = "AzureBatchProviderConfiguration"
)

// Config is the configuration of the provider. An environment variable, such as VKUBELET_AZUREBATCH_POOL, can
// also set a field with a single value.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Account and Location are the name and the region of the Batch account. Required without endpoint.
	Account  string `json:"account,omitempty" env:"AZURE_BATCH_ACCOUNT_NAME"`
	Location string `json:"location,omitempty" env:"AZURE_BATCH_ACCOUNT_LOCATION"`
	// Endpoint is the URL of the Batch account. Default: https://ACCOUNT.LOCATION.batch.azure.com.
	Endpoint string `json:"endpoint,omitempty"`
	// Pool is the ID of the pool of Linux machines for pods. The pool must not have a containerConfiguration.
	// Required.
	Pool string `json:"pool,omitempty" env:"AZURE_BATCH_POOLID"`
	// ClusterName names the home cluster in Azure. Clusters with the same account need different names. The name
	// must not change while pods exist. Required.
	ClusterName string `json:"clusterName,omitempty"`
	// Storage is the storage of pods, their statuses and their logs. Required.
	Storage Storage `json:"storage,omitzero"`
	// Cloud selects the Azure cloud. Default: the public cloud.
	Cloud Cloud `json:"cloud,omitzero"`
	// Credentials select the Azure identity of the provider. Default: the managed identity of this machine.
	Credentials azlogin.Credentials `json:"credentials,omitzero"`
	// Containers is unpack, podman or programs. With unpack, tasks pull images themselves. With podman, podman
	// on the machines pulls them. With programs, pods run programs of the machines, without images. Default:
	// unpack.
	Containers string `json:"containers,omitempty"`
	// NodeResources are the cpu and memory of one machine of the pool. Default: the resources of the pool's
	// machine size, if this program knows the size.
	NodeResources corev1.ResourceList `json:"nodeResources,omitempty"`
	// GPUs are the devices of one machine of the pool for pods. Default: none.
	GPUs GPUs `json:"gpus,omitzero"`
	// MaxNodes is the maximum number of machines in the pool. It is required for a pool with automatic scaling.
	// Default for other pools: the target size.
	MaxNodes int64 `json:"maxNodes,omitempty"`
	// SSH configures the connections of exec, attach and port-forward. Default: they are refused.
	SSH SSH `json:"ssh,omitzero"`
	// Program is the path of this program's file for the machines of the pool. Default: the running program.
	Program string `json:"program,omitempty"`
}

// Storage is a container of blobs.
type Storage struct {
	// ContainerURL is the URL of the container, such as https://account.blob.core.windows.net/pods. Required.
	ContainerURL string `json:"containerURL,omitempty"`
	// Identity is the resource ID of the pool's user-assigned identity. Tasks read and write the storage with
	// it. Required.
	Identity string `json:"identity,omitempty"`
}

// GPUs are the GPUs of a machine, as its CDI specification describes them.
type GPUs struct {
	// Resource is the resource that pods request, and the kind of the CDI devices, such as nvidia.com/gpu.
	Resource corev1.ResourceName `json:"resource,omitempty"`
	// PerNode is the number of GPUs of one machine. Default: 1.
	PerNode int64 `json:"perNode,omitempty"`
}

// SSH configures this provider's access to the machines of the pool.
type SSH struct {
	// Enabled lets this provider create a user with administrator rights on the machines of pods with a session. The pool must allow SSH from this
	// host.
	Enabled bool `json:"enabled,omitempty"`
}

// Cloud selects an Azure cloud.
type Cloud struct {
	// Authority is the URL of the token service. Default: https://login.microsoftonline.com.
	Authority string `json:"authority,omitempty" env:"AZURE_AUTHORITY_HOST"`
	// Scope is the scope of tokens for Batch. Default: https://batch.core.windows.net/.
	Scope string `json:"scope,omitempty"`
	// CAFile has the certificate authorities for connections to Azure. Default: the authorities of this machine.
	CAFile string `json:"caFile,omitempty"`
}

var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_AZUREBATCH"}

// LoadConfig returns the configuration in the file at path. Environment variables override the file. An empty
// path is no file.
func LoadConfig(path string) (Config, error) {
	c, err := format.Load(path)
	if err == nil && c.Credentials.File != "" {
		_, err = c.Credentials.ReadFile()
	}
	return c, err
}

// poolID matches the pool IDs that Batch allows.
var poolID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// complete fills the defaults of c, and refuses an impossible configuration with every reason.
func (c Config) complete() (Config, error) {
	problems := config.Problems{Provider: "azurebatch"}
	problem := problems.Add
	if c.Endpoint == "" && c.Account != "" && c.Location != "" {
		c.Endpoint = "https://" + c.Account + "." + c.Location + ".batch.azure.com"
	}
	c.Cloud.Authority = cmp.Or(c.Cloud.Authority, azlogin.PublicAuthority)
	c.Cloud.Scope = cmp.Or(c.Cloud.Scope, "https://batch.core.windows.net/")
	for _, field := range []struct{ name, value, want string }{
		{"endpoint", c.Endpoint, "the URL of the Batch account, or account and location"},
		{"storage.containerURL", c.Storage.ContainerURL, "the URL of a container of blobs, without a query"}, {"cloud.authority", c.Cloud.Authority, "a URL"},
	} {
		if u, err := url.Parse(field.value); err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || strings.HasSuffix(field.value, "/") {
			problem("%s: %q: want %s that begins with https:// and does not end with a slash", field.name, field.value, field.want)
		}
	}
	if !poolID.MatchString(c.Pool) {
		problem("pool: %q: want the ID of a pool of the Batch account", c.Pool)
	}
	problems.ClusterName(c.ClusterName, "VKUBELET_AZUREBATCH_CLUSTER_NAME")
	if !azlogin.IdentityID.MatchString(c.Storage.Identity) {
		problem("storage.identity: %q: want the resource ID of a user-assigned identity of the pool, /subscriptions/…/userAssignedIdentities/NAME", c.Storage.Identity)
	}
	switch c.Containers = cmp.Or(c.Containers, podjob.RuntimeUnpack); c.Containers {
	case podjob.RuntimeUnpack, podjob.RuntimePodman, programs:
	default:
		problem("containers: %q: want unpack, podman or programs", c.Containers)
	}
	for name, q := range c.NodeResources {
		if (name != corev1.ResourceCPU && name != corev1.ResourceMemory) || q.Sign() <= 0 {
			problem("nodeResources: %s: %s: want cpu and memory of one machine", name, &q)
		}
	}
	switch g := &c.GPUs; {
	case *g == (GPUs{}):
	case !strings.Contains(string(g.Resource), "/") || len(validation.IsQualifiedName(string(g.Resource))) > 0 || g.PerNode < 0:
		problem("gpus: %s, %d: want the name of a resource, such as nvidia.com/gpu, and a number of devices", g.Resource, g.PerNode)
	default:
		g.PerNode = cmp.Or(g.PerNode, 1)
	}
	if c.MaxNodes < 0 {
		problem("maxNodes: %d: want a number of machines", c.MaxNodes)
	}
	c.Credentials.Check(problem)
	return c, problems.Err()
}

const programs = "programs"

// runtimeName returns the runtime's name in package podjob.
func (c Config) runtimeName() string {
	if c.Containers == programs {
		return ""
	}
	return c.Containers
}

// size has the resources of a machine.
type size struct{ milliCPU, memory int64 }

// sizes are machine sizes with the same memory per CPU, up to a number of CPUs. Source: github.com/microsoft/aspire,
// src/Aspire.Hosting.Azure.Kubernetes/AksNodeVmSizes.cs, made from Azure's list of sizes; read 2026-11-28.
var sizes = []struct {
	name    *regexp.Regexp
	gib, to int64
}{
	{regexp.MustCompile(`(?i)^Standard_D(\d+)a?d?s?_v[3-6]$`), 4, 96},
	{regexp.MustCompile(`(?i)^Standard_E(\d+)a?d?s?_v[3-6]$`), 8, 48},
	{regexp.MustCompile(`(?i)^Standard_F(\d+)s_v2$`), 2, 72},
}

// sizeOf returns the CPU and memory of a machine of the pool. False means that neither the configuration nor the
// table has them.
func (c Config) sizeOf(vmSize string) (size, bool) {
	cpu, memory := c.NodeResources[corev1.ResourceCPU], c.NodeResources[corev1.ResourceMemory]
	s := size{cpu.MilliValue(), memory.Value()}
	for _, row := range sizes {
		if m := row.name.FindStringSubmatch(vmSize); m != nil {
			n := resource.MustParse(m[1])
			if cpus := n.Value(); cpus <= row.to {
				s = size{cmp.Or(s.milliCPU, cpus*1000), cmp.Or(s.memory, cpus*row.gib<<30)}
			}
		}
	}
	return s, s.milliCPU > 0 && s.memory > 0
}
