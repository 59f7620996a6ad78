// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"cmp"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// APIVersion and Kind of a configuration file of this provider.
const (
	APIVersion = "aci.virtual-kubelet.io/v1alpha1"
	Kind       = "ACIProviderConfiguration"
)

// execProbeEvery is the default of Config.ExecProbeEvery: each probe is a request and a session of ACI.
const execProbeEvery = 30 * time.Second

// Config is the configuration of the provider. An environment variable such as VKUBELET_ACI_REGION can also set
// a field that is one value or a list.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// SubscriptionID is the subscription of the container groups. Required.
	SubscriptionID string `json:"subscriptionID,omitempty" env:"AZURE_SUBSCRIPTION_ID"`
	// ResourceGroup is the resource group of the container groups. It must exist. Required.
	ResourceGroup string `json:"resourceGroup,omitempty" env:"ACI_RESOURCE_GROUP"`
	// Region is where pods run, such as westeurope. Required.
	Region string `json:"region,omitempty" env:"ACI_REGION"`
	// ClusterName names the home cluster in tags. Each cluster that uses the same resource group needs its own
	// name. The name must not change while there are pods. Required.
	ClusterName string `json:"clusterName,omitempty" env:"ACI_CLUSTER_NAME"`
	// Cloud selects the Azure cloud. Default: the public one.
	Cloud Cloud `json:"cloud,omitzero"`
	// Credentials are the credentials of the provider. Default: the managed identity of this machine.
	Credentials azlogin.Credentials `json:"credentials,omitzero"`
	// Network is the network of pods. Default: pods have no addresses.
	Network Network `json:"network,omitzero"`
	// Priority is Regular or Spot, for all pods. Default: Regular.
	Priority string `json:"priority,omitempty"`
	// Zones are the zones of the region for pods. Default: ACI decides.
	Zones []string `json:"zones,omitempty"`
	// Identities are the resource IDs of user-assigned managed identities that a pod may ask for with its
	// annotation. Default: none.
	Identities []string `json:"identities,omitempty"`
	// RegistryIdentities are the resource IDs of the identities for pulling images, by the host of the registry.
	// The groups of the pods with these images get the identities.
	RegistryIdentities map[string]string `json:"registryIdentities,omitempty"`
	// Annotations are the annotations of virtual-kubelet.io/… that pods may set. Default: none, because they
	// cost money or give rights.
	Annotations []string `json:"annotations,omitempty"`
	// LogAnalytics is a workspace for the logs of all pods. Default: none.
	LogAnalytics LogAnalytics `json:"logAnalytics,omitzero"`
	// Seccomp are the profiles for containers. Default: none.
	Seccomp Seccomp `json:"seccomp,omitzero"`
	// Stats lets kubectl top show the usage of pods. It costs a request to Azure Monitor a minute for each 50
	// pods, while a client asks for the figures. Default: no.
	Stats bool `json:"stats,omitempty"`
	// ExecProbeEvery is the shortest period of a probe by command that this node runs. Each such probe is a
	// request and a session of ACI. Default: 30s.
	ExecProbeEvery metav1.Duration `json:"execProbeEvery,omitempty"`
	// DefaultResources are the requests of containers without requests, because ACI needs both values. Default:
	// 1 CPU and 1500M.
	DefaultResources Resources `json:"defaultResources,omitzero"`
	// Capacity is the capacity of the node: the quota of the subscription, or a part of it. Default: 10000 CPUs,
	// 4Ti of memory, 5000 pods, and 50G of ephemeral storage for each pod.
	Capacity Capacity `json:"capacity,omitzero"`
	// Requests limits the requests to ACI for the states of pods.
	Requests Requests `json:"requests,omitzero"`

	asAzureACI bool // the configuration is a file of azure-aci, or its variables
}

// Cloud has the addresses of an Azure cloud.
type Cloud struct {
	// Endpoint is the URL of its resource manager. Default: https://management.azure.com.
	Endpoint string `json:"endpoint,omitempty"`
	// Audience is the audience of the tokens for Endpoint. Default: the endpoint.
	Audience string `json:"audience,omitempty"`
	// Authority is the URL of the token service. Default: https://login.microsoftonline.com.
	Authority string `json:"authority,omitempty" env:"AZURE_AUTHORITY_HOST"`
	// Metrics is the URL of the metrics of the region. Default: https://REGION.metrics.monitor.azure.com.
	Metrics string `json:"metrics,omitempty"`
	// MetricsAudience is the audience of the tokens for Metrics. Default: https://metrics.monitor.azure.com.
	MetricsAudience string `json:"metricsAudience,omitempty"`
	// CAFile has the certificate authorities of these URLs. Default: the authorities of this machine.
	CAFile string `json:"caFile,omitempty"`
}

// Network is a subnet or public addresses. A subnet must be delegated to
// Microsoft.ContainerInstance/containerGroups.
type Network struct {
	// SubscriptionID and ResourceGroup locate the virtual network. Default: the same as the container groups.
	SubscriptionID string `json:"subscriptionID,omitempty" env:"ACI_VNET_SUBSCRIPTION_ID"`
	ResourceGroup  string `json:"resourceGroup,omitempty" env:"ACI_VNET_RESOURCE_GROUP"`
	VNet           string `json:"vnet,omitempty" env:"ACI_VNET_NAME"`
	Subnet         string `json:"subnet,omitempty" env:"ACI_SUBNET_NAME"`
	// ClusterDNS is the address of the cluster's DNS as seen from the subnet. Default: pods use the DNS of the
	// virtual network.
	ClusterDNS string `json:"clusterDNS,omitempty" env:"KUBE_DNS_IP"`
	// KubeProxy lets pods in a subnet reach addresses of Services, including clusterDNS. Default: they do not.
	KubeProxy KubeProxy `json:"kubeProxy,omitzero"`
	// Public gives pods with ports a public address. It excludes a subnet. Default: no. For a file of azure-aci,
	// and for its variables without a file, the default is yes if there is no subnet, as with azure-aci.
	Public *bool `json:"public,omitempty"`
	// Reachable means that this process reaches the addresses of pods. Then this process runs the probes by HTTP,
	// TCP and gRPC that ACI lacks. Otherwise such probes are refused. Default: true.
	Reachable *bool `json:"reachable,omitempty"`
}

// KubeProxy configures the kube-proxy that ACI runs beside the containers of each group. A running kube-proxy
// keeps its settings until the group ends.
type KubeProxy struct {
	// APIServer is the URL of the API server as seen from the subnet. Without a kubeconfig, kube-proxy shows the
	// API server the token of the service account of this process, as with azure-aci.
	APIServer string `json:"apiServer,omitempty" env:"MASTER_URI"`
	// Kubeconfig is the kubeconfig of an account that may list Services and Endpoints, and no more. It contains
	// the token, and replaces APIServer.
	Kubeconfig config.Secret `json:"kubeconfig,omitzero"`
	// ClusterCIDR is the range of the addresses of pods. Default: 10.240.0.0/16, as with azure-aci.
	ClusterCIDR string `json:"clusterCIDR,omitempty" env:"CLUSTER_CIDR"`
}

// isPublic reports whether pods with ports have a public address.
func (n Network) isPublic() bool { return n.Public != nil && *n.Public }

// id returns the resource ID of the subnet, or "" if there is none.
func (n Network) id() string {
	if n.Subnet == "" {
		return ""
	}
	return "/subscriptions/" + n.SubscriptionID + "/resourceGroups/" + n.ResourceGroup + "/providers/Microsoft.Network/virtualNetworks/" + n.VNet + "/subnets/" + n.Subnet
}

// LogAnalytics is a workspace.
type LogAnalytics struct {
	WorkspaceID  string        `json:"workspaceID,omitempty" env:"LOG_ANALYTICS_ID"`
	WorkspaceKey config.Secret `json:"workspaceKey,omitzero" env:"LOG_ANALYTICS_KEY"`
	// File is a JSON file with the values that are not set here.
	File string `json:"file,omitempty" env:"LOG_ANALYTICS_AUTH_LOCATION"`
}

// Seccomp are the profiles for containers. ACI gets the content of the file with each group.
type Seccomp struct {
	// Directory has the files for localhostProfile. Default: pods cannot use localhostProfile.
	Directory string `json:"directory,omitempty"`
	// RuntimeDefault is the file for pods that ask for the default profile of their runtime. ACI does not say
	// whether it has such a profile. Default: these pods are refused.
	RuntimeDefault string `json:"runtimeDefault,omitempty"`
}

func (s Seccomp) isSet() bool { return s.Directory != "" || s.RuntimeDefault != "" }

// Resources are CPU and memory.
type Resources struct {
	CPU    resource.Quantity `json:"cpu,omitzero"`
	Memory resource.Quantity `json:"memory,omitzero"`
}

// Capacity is the capacity of a node.
type Capacity struct {
	CPU    resource.Quantity `json:"cpu,omitzero" env:"ACI_QUOTA_CPU"`
	Memory resource.Quantity `json:"memory,omitzero" env:"ACI_QUOTA_MEMORY"`
	Pods   resource.Quantity `json:"pods,omitzero" env:"ACI_QUOTA_POD"`
	// EphemeralStorage limits the sum of the requests of pods; ACI gives 50G to each pod.
	EphemeralStorage resource.Quantity `json:"ephemeral-storage,omitzero"`
}

// Requests limits the requests per minute.
type Requests struct {
	// AtRest is the number of requests a minute while no pod starts or stops. Default: 15.
	AtRest int `json:"atRest,omitempty"`
}

// storageGiven is the storage of each group, for volumes on disk:
// https://learn.microsoft.com/en-us/azure/container-instances/container-instances-volume-emptydir of 2026-11-28.
// A group has no field for another size.
const storageGiven = "50G"

// format is the format of a configuration file of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_ACI", Unversioned: fromTOML}

// LoadConfig returns the configuration in the file at path; the environment overrides the file. An empty path
// means no file.
func LoadConfig(path string) (Config, error) {
	c, err := format.Load(path)
	c.asAzureACI = c.asAzureACI || path == "" && os.Getenv("ACI_RESOURCE_GROUP") != ""
	if err == nil && c.LogAnalytics.File != "" {
		c, err = c.withLogFile()
	}
	if err == nil && c.Credentials.File != "" {
		c, err = c.withAzureFile()
	}
	return c, err
}

// complete fills the defaults of c, and refuses invalid values with every reason.
func (c Config) complete() (Config, error) {
	problems := config.Problems{Provider: "aci"}
	problem := problems.Add
	for _, field := range []struct{ name, value, want string }{
		{"subscriptionID", c.SubscriptionID, "a subscription, such as 6f2d8e1c-…"},
		{"resourceGroup", c.ResourceGroup, "a resource group for container groups"},
	} {
		if field.value == "" || strings.ContainsAny(field.value, "/?#% ") {
			problem("%s: %q: want %s", field.name, field.value, field.want)
		}
	}
	if len(validation.IsDNS1123Label(c.Region)) > 0 {
		problem("region: %q: want that of ACI, such as westeurope", c.Region)
	}
	problems.ClusterName(c.ClusterName, "ACI_CLUSTER_NAME")
	c.Cloud.Endpoint = cmp.Or(c.Cloud.Endpoint, "https://management.azure.com")
	c.Cloud.Audience = cmp.Or(c.Cloud.Audience, c.Cloud.Endpoint)
	c.Cloud.Authority = cmp.Or(c.Cloud.Authority, "https://login.microsoftonline.com")
	c.Cloud.Metrics = cmp.Or(c.Cloud.Metrics, "https://"+c.Region+".metrics.monitor.azure.com")
	c.Cloud.MetricsAudience = cmp.Or(c.Cloud.MetricsAudience, "https://metrics.monitor.azure.com")
	for name, text := range map[string]string{"cloud.endpoint": c.Cloud.Endpoint, "cloud.authority": c.Cloud.Authority, "cloud.metrics": c.Cloud.Metrics} {
		problems.HTTPS(name, text)
	}
	if c.Priority = cmp.Or(c.Priority, "Regular"); c.Priority != "Regular" && c.Priority != "Spot" {
		problem("priority: %q: want Regular or Spot", c.Priority)
	}
	problems.Each("annotations", c.Annotations, func(name string) bool { return setters[name] != nil }, "one of "+strings.Join(known(), ", "))
	if (c.LogAnalytics.WorkspaceID != "") != c.LogAnalytics.WorkspaceKey.IsSet() {
		problem("logAnalytics: workspaceID or workspaceKey is missing")
	}
	problems.Wait("execProbeEvery", &c.ExecProbeEvery, execProbeEvery)
	c.completeIdentities(&problems)
	c.Credentials.Check(problem)
	c.completeNetwork(problem)
	if c.isSpot() && (c.Network.Subnet != "" || c.Network.isPublic() || len(c.Zones) > 0) {
		problem("priority: Spot: groups of this priority have no subnet, no public address and no zone: remove those, or the priority")
	}
	c.completeSizes(problem)
	return c, problems.Err()
}

func (c *Config) isSpot() bool { return c.Priority == string(aci.ContainerGroupPrioritySpot) }

func (c *Config) completeIdentities(problems *config.Problems) {
	const want = "the resource ID of a user-assigned identity, such as /subscriptions/…/resourceGroups/…/providers/Microsoft.ManagedIdentity/userAssignedIdentities/reader"
	problems.Each("identities", c.Identities, azlogin.IdentityID.MatchString, want)
	for _, host := range slices.Sorted(maps.Keys(c.RegistryIdentities)) {
		if strings.ContainsAny(host, ":/") || host == "" {
			problems.Add("registryIdentities: %q: want the host of a registry, such as home.azurecr.io, without a port", host)
		}
		if id := c.RegistryIdentities[host]; !azlogin.IdentityID.MatchString(id) {
			problems.Add("registryIdentities[%s]: %q: want %s", host, id, want)
		}
	}
}

func (c *Config) completeNetwork(problem func(string, ...any)) {
	n := &c.Network
	if (n.VNet == "") != (n.Subnet == "") {
		problem("network: vnet or subnet is missing: name both, or none")
	}
	if n.Public == nil && n.Subnet == "" && c.asAzureACI && !c.isSpot() {
		n.Public = new(true)
	}
	if n.isPublic() && n.Subnet != "" {
		problem("network.public: groups in a subnet have no public address: remove it, or the subnet")
	}
	if n.ClusterDNS != "" {
		if _, err := netip.ParseAddr(n.ClusterDNS); err != nil {
			problem("network.clusterDNS: %q: want an IP address", n.ClusterDNS)
		}
		if n.Subnet == "" {
			problem("network.clusterDNS: only groups in a subnet can have it: name vnet and subnet")
		}
	}
	if k := n.KubeProxy; k.ClusterCIDR != "" {
		if _, err := netip.ParsePrefix(k.ClusterCIDR); err != nil {
			problem("network.kubeProxy.clusterCIDR: %q: want a range of addresses, such as 10.240.0.0/16", k.ClusterCIDR)
		}
	}
	if n.KubeProxy.Kubeconfig.IsSet() && n.Subnet == "" {
		problem("network.kubeProxy: only groups in a subnet can have it: name vnet and subnet")
	}
	n.SubscriptionID, n.ResourceGroup = cmp.Or(n.SubscriptionID, c.SubscriptionID), cmp.Or(n.ResourceGroup, c.ResourceGroup)
}

func (c *Config) completeSizes(problem func(string, ...any)) {
	for _, q := range []struct {
		name  string
		value *resource.Quantity
		or    string
	}{
		{"defaultResources.cpu", &c.DefaultResources.CPU, "1"}, {"defaultResources.memory", &c.DefaultResources.Memory, "1500M"},
		{"capacity.cpu", &c.Capacity.CPU, "10000"}, {"capacity.memory", &c.Capacity.Memory, "4Ti"}, {"capacity.pods", &c.Capacity.Pods, "5000"},
	} {
		switch q.value.Sign() {
		case 0:
			*q.value = resource.MustParse(q.or)
		case -1:
			problem("%s: %s: want more than 0", q.name, q.value)
		}
	}
	if c.Capacity.EphemeralStorage.Sign() < 0 {
		problem("capacity.ephemeral-storage: %s: want more than 0", &c.Capacity.EphemeralStorage)
	}
	if c.Requests.AtRest = cmp.Or(c.Requests.AtRest, 15); c.Requests.AtRest < 4 {
		problem("requests.atRest: %d: want at least 4: lists alone need that", c.Requests.AtRest)
	}
}

// isDefault reports whether the number of pods is the default.
func (c Capacity) isDefault() bool { return c.Pods.Value() == 5000 }

// resources returns the resources of the node.
func (c Capacity) resources() corev1.ResourceList {
	all := corev1.ResourceList{corev1.ResourceCPU: c.CPU, corev1.ResourceMemory: c.Memory, corev1.ResourcePods: c.Pods}
	if !c.EphemeralStorage.IsZero() {
		all[corev1.ResourceEphemeralStorage] = c.EphemeralStorage
	}
	return storage.Offer(all, resource.MustParse(storageGiven))
}
