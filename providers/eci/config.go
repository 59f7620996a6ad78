// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/oldfile"
)

// APIVersion and Kind of a configuration file of this provider.
const (
	APIVersion = "eci.virtual-kubelet.io/v1alpha1"
	Kind       = "ECIProviderConfiguration"
)

// execProbeEvery is the default of Config.ExecProbeEvery: each probe is a request and a session of ECI.
const execProbeEvery = 30 * time.Second

// Config is the configuration of the provider. An environment variable such as VKUBELET_ECI_REGION can also set
// a field that is one value or a list.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Region is where pods run, such as cn-hangzhou. Required.
	Region string `json:"region,omitempty" env:"ECI_REGION"`
	// Endpoint is the URL of ECI. Default: the endpoint of the region.
	Endpoint string `json:"endpoint,omitempty"`
	// CAFile has the certificate authorities of the endpoint. Default: the authorities of this machine.
	CAFile string `json:"caFile,omitempty"`
	// AccessKeyID and AccessKeySecret sign requests. Either this key, OIDC or InstanceRole is required.
	AccessKeyID     config.Secret `json:"accessKeyID,omitzero" env:"ECI_ACCESS_KEY,ALIBABA_CLOUD_ACCESS_KEY_ID"`
	AccessKeySecret config.Secret `json:"accessKeySecret,omitzero" env:"ECI_SECRET_KEY,ALIBABA_CLOUD_ACCESS_KEY_SECRET"`
	// SecurityToken belongs to a temporary key.
	SecurityToken config.Secret `json:"securityToken,omitzero" env:"ALIBABA_CLOUD_SECURITY_TOKEN"`
	// OIDC is a role that the provider assumes with the token of a service account.
	OIDC OIDC `json:"oidc,omitzero"`
	// InstanceRole is the role of the ECS instance of this program.
	InstanceRole InstanceRole `json:"instanceRole,omitzero"`
	// ClusterName names the home cluster in ECI. Each cluster of an account needs its own name. The name must
	// not change while there are pods. Required.
	ClusterName string `json:"clusterName,omitempty" env:"ECI_CLUSTER_NAME"`
	// VSwitchIDs are the switches of pods: ECI uses the first one with room. Required.
	VSwitchIDs []string `json:"vSwitchIDs,omitempty" env:"ECI_VSWITCH"`
	// SecurityGroupID is the security group of pods. Required.
	SecurityGroupID string `json:"securityGroupID,omitempty" env:"ECI_SECURITY_GROUP"`
	// ResourceGroupID is the resource group of pods. Default: the resource group of the account.
	ResourceGroupID string `json:"resourceGroupID,omitempty"`
	// Annotations are the annotations of k8s.aliyun.com/eci-… that pods may set. Default: none, because they
	// cost money or give rights.
	Annotations []string `json:"annotations,omitempty"`
	// RAMRoles are the roles that a pod may ask for with the annotation k8s.aliyun.com/eci-ram-role-name.
	// Default: none.
	RAMRoles []string `json:"ramRoles,omitempty"`
	// SecurityGroupIDs are the groups that a pod may ask for instead of SecurityGroupID, with the annotation
	// k8s.aliyun.com/eci-security-group. Default: none.
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`
	// ACRInstances are the instances of Container Registry from which ECI pulls images with a role. Default:
	// none, and ECI pulls without settings only from instances of the account with a default domain.
	ACRInstances []ACRInstance `json:"acrInstances,omitempty"`
	// GPUInstanceTypes are the instance types of pods with GPUs that name no type. ECI takes the first type with
	// room. Default: none, and such pods are refused.
	GPUInstanceTypes []string `json:"gpuInstanceTypes,omitempty"`
	// Stats lets kubectl top show the usage of pods. It costs a request for each 20 pods when a client asks for
	// the figures. Default: no.
	Stats bool `json:"stats,omitempty"`
	// ExecProbeEvery is the shortest period of a probe by command that this node runs. Each such probe is a
	// request and a session of ECI. Default: 30s.
	ExecProbeEvery metav1.Duration `json:"execProbeEvery,omitempty"`
	// Reachable means that this process reaches pods by their addresses. Then this process runs the probes by
	// HTTP, TCP and gRPC that ECI lacks. Otherwise such probes are refused. Default: true.
	Reachable *bool `json:"reachable,omitempty"`
	// DefaultResources are the cpu and memory of containers without requests. Default: 1 CPU and 2Gi.
	DefaultResources corev1.ResourceList `json:"defaultResources,omitempty"`
	// Capacity is the capacity of the node: the quota of the account, or a part of it. Required, except for
	// ephemeral-storage: 30Gi for each pod.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// For tests. Zero means the defaults of package poll, and the clock of the machine.
	busy, rest, idle, seenWithin time.Duration
	now                          func() time.Time
}

func (c Config) clock() func() time.Time {
	if c.now == nil {
		return time.Now
	}
	return c.now
}

// ACRInstance is an instance of Container Registry.
type ACRInstance struct {
	// ID is the ID of the instance, such as cri-….
	ID string `json:"id,omitempty"`
	// Region is the region of the instance. Default: the region of the pods.
	Region string `json:"region,omitempty"`
	// Domains are the hosts of its images. Default: requests of all pods name the instance.
	Domains []string `json:"domains,omitempty"`
	// ServiceRole and UserRole are the ARNs of the roles that ECI assumes for an instance of another account: ServiceRole of this
	// account, and UserRole of the other one.
	ServiceRole string `json:"serviceRole,omitempty"`
	UserRole    string `json:"userRole,omitempty"`
}

// OIDC is a role that the provider assumes with the token of a service account.
type OIDC struct {
	RoleARN     string `json:"roleARN,omitempty" env:"ALIBABA_CLOUD_ROLE_ARN"`
	ProviderARN string `json:"providerARN,omitempty" env:"ALIBABA_CLOUD_OIDC_PROVIDER_ARN"`
	TokenFile   string `json:"tokenFile,omitempty" env:"ALIBABA_CLOUD_OIDC_TOKEN_FILE"`
	// Endpoint is the URL of STS. Default: ALIBABA_CLOUD_STS_ENDPOINT, which may be a host alone, or else the
	// endpoint of ALIBABA_CLOUD_STS_REGION or Region. With ALIBABA_CLOUD_VPC_ENDPOINT_ENABLED=true it is the
	// endpoint inside the VPC.
	Endpoint string `json:"endpoint,omitempty"`
}

// InstanceRole is the role of an ECS instance.
type InstanceRole struct {
	Name string `json:"name,omitempty" env:"ALIBABA_CLOUD_ECS_METADATA"`
	// Endpoint is the URL of the instance's metadata. Default: http://100.100.100.200.
	Endpoint string `json:"endpoint,omitempty"`
}

// format is the format of a configuration file of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_ECI", Unversioned: fromTOML}

// LoadConfig returns the configuration in the file at path; the environment overrides the file. An empty path
// means no file.
func LoadConfig(path string) (Config, error) {
	c, err := format.Load(path)
	if err != nil {
		return c, err
	}
	return c.withQuotas()
}

// findEndpoint sets a missing URL of STS from the variables of the vendor's SDK and of the add-on
// ack-pod-identity-webhook.
func (o *OIDC) findEndpoint(region string) {
	if o.Endpoint != "" {
		return
	}
	host := os.Getenv("ALIBABA_CLOUD_STS_ENDPOINT")
	if host == "" {
		service := "sts"
		if strings.EqualFold(os.Getenv("ALIBABA_CLOUD_VPC_ENDPOINT_ENABLED"), "true") {
			service = "sts-vpc"
		}
		host = service + "." + cmp.Or(os.Getenv("ALIBABA_CLOUD_STS_REGION"), region) + ".aliyuncs.com"
	}
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	o.Endpoint = strings.TrimSuffix(host, "/")
}

// fromTOML reads a configuration file of alibabacloud-eci, with the defaults of alibabacloud-eci.
func fromTOML(name string, data []byte) (Config, error) {
	c := Config{Region: "cn-hangzhou", ClusterName: "default", Capacity: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("20"), corev1.ResourceMemory: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("20"),
	}}
	err := oldfile.Read(name, data, map[string]oldfile.Setter{
		"Region": oldfile.Text(&c.Region), "ClusterName": oldfile.Text(&c.ClusterName),
		"VSwitch": oldfile.List(&c.VSwitchIDs), "SecureGroup": oldfile.Text(&c.SecurityGroupID),
		"CPU": oldfile.Resource(c.Capacity, corev1.ResourceCPU), "Memory": oldfile.Resource(c.Capacity, corev1.ResourceMemory),
		"Pods": oldfile.Resource(c.Capacity, corev1.ResourcePods), "OperatingSystem": oldfile.Linux,
	})
	return c, err
}

// quotas are the variables of alibabacloud-eci for amounts. Capacity is a map, so its amounts have no variables
// of their own.
var quotas = map[string]corev1.ResourceName{
	"ECI_QUOTA_CPU": corev1.ResourceCPU, "ECI_QUOTA_MEMORY": corev1.ResourceMemory, "ECI_QUOTA_POD": corev1.ResourcePods,
}

// withQuotas takes the capacity from the environment, which overrides the file.
func (c Config) withQuotas() (Config, error) {
	for variable, name := range quotas {
		text := os.Getenv(variable)
		if text == "" {
			continue
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return Config{}, fmt.Errorf("environment variable %s is %q, want an amount, such as 20 or 100Gi", variable, text)
		}
		if c.Capacity == nil {
			c.Capacity = corev1.ResourceList{}
		}
		c.Capacity[name] = q
	}
	return c, nil
}
