// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// The version and the kind of a configuration file of this provider.
const (
	APIVersion = "huaweicci.virtual-kubelet.io/v1alpha1"
	Kind       = "HuaweiCCIProviderConfiguration"
)

// Versions of the API of CCI.
const (
	API20 = "2.0"
	API10 = "1.0"
)

// Defaults of the limits of requests.
const (
	DefaultQPS   = 20
	DefaultBurst = 40
)

// Config is the configuration of the provider. Environment variables such as VKUBELET_HUAWEICCI_REGION can also
// set fields with one value or a list.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Region is the region of CCI, such as cn-north-4. Required, unless Endpoint is set.
	Region string `json:"region,omitempty"`
	// Endpoint is the URL of CCI. Default: the endpoint of the region.
	Endpoint string `json:"endpoint,omitempty"`
	// CAFile has the certificate authorities for the endpoint. Default: the authorities of this machine.
	CAFile string `json:"caFile,omitempty"`
	// API is API20 or API10. Default API20.
	API string `json:"api,omitempty"`
	// ProjectID is the ID of the project in the region. Required.
	ProjectID string `json:"projectID,omitempty" env:"HUAWEICLOUD_SDK_PROJECT_ID"`
	// AccessKey and SecretKey sign requests. Required, unless IAM is set.
	AccessKey config.Secret `json:"accessKey,omitzero" env:"HUAWEICLOUD_SDK_AK"`
	SecretKey config.Secret `json:"secretKey,omitzero" env:"HUAWEICLOUD_SDK_SK"`
	// SecurityToken is the security token of a temporary access key.
	SecurityToken config.Secret `json:"securityToken,omitzero" env:"HUAWEICLOUD_SDK_SECURITY_TOKEN"`
	// IAM configures authentication by IAM tokens instead of an access key.
	IAM IAM `json:"iam,omitzero"`
	// ClusterName is the name of the home cluster in CCI. It must be unique among the clusters that use a CCI
	// namespace, and must not change while there are pods. Required.
	ClusterName string `json:"clusterName,omitempty"`
	// Namespace is the CCI namespace of all pods. Default: vk- and ClusterName.
	Namespace string `json:"namespace,omitempty"`
	// Network is created in the namespace if the namespace has none. The provider also creates a missing
	// namespace. Without Network, both must exist.
	Network Network `json:"network,omitzero"`
	// InstanceType is the type of machine for pods, such as general-computing. Default: CCI decides.
	InstanceType string `json:"instanceType,omitempty"`
	// GPUDriver is the driver for GPU pods that do not specify one, such as gpu-460.106. Only API10 uses it.
	// Default: none, and such pods are refused.
	GPUDriver string `json:"gpuDriver,omitempty"`
	// DefaultResources are the cpu and memory of pods without requests and limits. Default: 1 CPU and 2Gi.
	DefaultResources corev1.ResourceList `json:"defaultResources,omitempty"`
	// Annotations are the pod annotations that are copied to CCI: full names, and prefixes such as example.com/*.
	// Default: none, because CCI assigns addresses and privileges by annotations, and some of them cost money.
	Annotations []string `json:"annotations,omitempty"`
	// Capacity is the capacity of the node: the quota of the project, or a part of it. Required, except for
	// ephemeral-storage, whose default is 20G for each pod.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// QPS and Burst limit requests to CCI. Default DefaultQPS and DefaultBurst.
	QPS   int `json:"qps,omitempty"`
	Burst int `json:"burst,omitempty"`

	refreshEvery time.Duration    // for tests; 0: the default
	now          func() time.Time // for tests; nil: the machine's clock
}

// IAM is a user of an IAM service (v3).
type IAM struct {
	// Endpoint is the URL of the service. Default: the endpoint of the region.
	Endpoint string `json:"endpoint,omitempty"`
	// User is a user of the account Domain.
	User     string        `json:"user,omitempty"`
	Domain   string        `json:"domain,omitempty"`
	Password config.Secret `json:"password,omitzero"`
}

// Network binds a namespace of CCI to subnets of a VPC.
type Network struct {
	// Name is the name of the network. Default: vk.
	Name string `json:"name,omitempty"`
	// DomainID is the ID of the account. Required.
	DomainID string `json:"domainID,omitempty"`
	// Subnets and SecurityGroups are IDs. Both are required.
	Subnets        []string `json:"subnets,omitempty"`
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// Type is the type of the network. Default: underlay_neutron.
	Type string `json:"type,omitempty"`
}

// format describes the configuration file of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_HUAWEICCI", Renamed: map[string]string{"clusterID": "clusterName"}}

// LoadConfig reads the configuration file at path; environment variables override it. If path is empty,
// LoadConfig reads no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// endpointOf returns the address of a service in a region. Dublin has its own domain, according to the vendor's
// page about its SDKs of 2026-05-18.
func endpointOf(service, region string) string {
	domain := "myhuaweicloud.com"
	if region == "eu-west-101" {
		domain = "myhuaweicloud.eu"
	}
	return "https://" + service + "." + region + "." + domain
}

// completeConfig fills the defaults of c and refuses invalid configurations. The error lists every problem.
func (c Config) completeConfig() (Config, error) {
	problems := config.Problems{Provider: "huaweicci"}
	problem := problems.Add
	if c.Endpoint == "" && c.Region != "" {
		c.Endpoint = endpointOf("cci", c.Region)
	}
	if u, err := url.Parse(c.Endpoint); err != nil || u.Scheme != "https" || u.Host == "" {
		problem("endpoint: %q: want the region, such as cn-north-4, or an URL that begins with https://", c.Endpoint)
	}
	if c.API == "" {
		c.API = API20
	}
	if c.API != API20 && c.API != API10 {
		problem("api: %q: want %q or %q", c.API, API20, API10)
	}
	if c.ProjectID == "" {
		problem("projectID: is missing: it is under My Credentials of the console")
	}
	if len(validation.IsDNS1123Label(c.ClusterName)) > 0 {
		problem("clusterName: %q: want a name for the home cluster, such as home-1: set it in the file of --provider-config or in VKUBELET_HUAWEICCI_CLUSTER_NAME", c.ClusterName)
	}
	if c.Namespace == "" {
		c.Namespace = "vk-" + c.ClusterName
	}
	if wrong := validation.IsDNS1123Label(c.Namespace); len(wrong) > 0 && c.ClusterName != "" {
		problem("namespace: %q: %s", c.Namespace, wrong[0])
	}
	if c.GPUDriver != "" && c.API != API10 {
		problem("gpuDriver: %q: API %s of CCI has no GPUs: remove it", c.GPUDriver, c.API)
	}
	c.completeCredentials(problem)
	c.completeNetwork(problem)
	c.completeSizes(problem)
	if c.QPS < 0 || c.Burst < 0 {
		problem("qps and burst are %d and %d, want 0 for the default, or more", c.QPS, c.Burst)
	}
	if c.QPS == 0 {
		c.QPS = DefaultQPS
	}
	if c.Burst == 0 {
		c.Burst = max(DefaultBurst, c.QPS)
	}
	return c, problems.Err()
}

func (c *Config) completeCredentials(problem func(string, ...any)) {
	keys, user := c.AccessKey.IsSet() || c.SecretKey.IsSet(), c.IAM.User != ""
	switch {
	case keys && user:
		problem("iam: requests are signed by accessKey: remove iam or accessKey")
	case user && (c.IAM.Domain == "" || !c.IAM.Password.IsSet()):
		problem("iam: domain or password is missing")
	case !user && (!c.AccessKey.IsSet() || !c.SecretKey.IsSet()):
		problem("accessKey and secretKey: at least one is missing, and there is no iam.user: name the files with the keys")
	}
	if user && c.IAM.Endpoint == "" && c.Region != "" {
		c.IAM.Endpoint = endpointOf("iam", c.Region)
	}
	if u, err := url.Parse(c.IAM.Endpoint); user && (err != nil || u.Scheme != "https" || u.Host == "") {
		problem("iam.endpoint: %q: want the region, or an URL that begins with https://", c.IAM.Endpoint)
	}
}

func (c *Config) completeNetwork(problem func(string, ...any)) {
	n := &c.Network
	if n.Name == "" && n.DomainID == "" && len(n.Subnets)+len(n.SecurityGroups) == 0 {
		return
	}
	if c.API == API10 {
		problem("network: is made with API %s only: make the namespace and its network in the console", API20)
	}
	if n.DomainID == "" || len(n.Subnets) == 0 || len(n.SecurityGroups) == 0 {
		problem("network: domainID, subnets or securityGroups is missing")
	}
	if n.Name == "" {
		n.Name = "vk"
	}
	if n.Type == "" {
		n.Type = "underlay_neutron"
	}
}

func (c *Config) completeSizes(problem func(string, ...any)) {
	if c.DefaultResources == nil {
		c.DefaultResources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("2Gi")}
	}
	if s := sizing.Of(c.DefaultResources); len(c.DefaultResources) != 2 || s.MilliCPU <= 0 || s.Memory <= 0 {
		problem("defaultResources: want cpu and memory, both more than 0")
	} else if _, ok := sizing.Fit(c.sizeRows(), s); !ok {
		problem("defaultResources: CCI has no size with %s", s)
	}
	if len(c.Capacity) == 0 {
		problem("capacity: is missing: cpu, memory and pods of the quota, as CCI does not tell it")
	}
	for name, quantity := range c.Capacity {
		if quantity.Sign() < 0 {
			problem("capacity: %s is %s, want 0 or more", name, quantity.String())
		}
	}
	c.Capacity = storage.Offer(c.Capacity, resource.MustParse(storageGiven))
}

// showsAnnotation reports whether an annotation is copied to CCI. The annotations of the size and the type are
// not, because the provider sets them.
func (c Config) showsAnnotation(key string) bool {
	return key != annotationSize && key != annotationType && slices.ContainsFunc(c.Annotations, func(name string) bool {
		beginning, open := strings.CutSuffix(name, "*")
		return name == key || open && strings.HasPrefix(key, beginning)
	})
}
