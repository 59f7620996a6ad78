// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"errors"
	"fmt"
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

// What a configuration file of this provider says about itself.
const (
	APIVersion = "eci.virtual-kubelet.io/v1alpha1"
	Kind       = "ECIProviderConfiguration"
)

// Config is the configuration of the provider. A field that is one value or a list can also be set by an environment variable, such
// as VKUBELET_ECI_REGION.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Region is where pods run, such as cn-hangzhou. Required.
	Region string `json:"region,omitempty" env:"ECI_REGION"`
	// Endpoint is the URL of ECI. Default: that of the region.
	Endpoint string `json:"endpoint,omitempty"`
	// CAFile has the authorities that the endpoint is verified by. Default: those of this machine.
	CAFile string `json:"caFile,omitempty"`
	// AccessKeyID and AccessKeySecret sign requests. One of these, OIDC and InstanceRole is required.
	AccessKeyID     config.Secret `json:"accessKeyID,omitzero" env:"ECI_ACCESS_KEY,ALIBABA_CLOUD_ACCESS_KEY_ID"`
	AccessKeySecret config.Secret `json:"accessKeySecret,omitzero" env:"ECI_SECRET_KEY,ALIBABA_CLOUD_ACCESS_KEY_SECRET"`
	// SecurityToken belongs to a key that is temporary.
	SecurityToken config.Secret `json:"securityToken,omitzero" env:"ALIBABA_CLOUD_SECURITY_TOKEN"`
	// OIDC takes a role by the token of a service account.
	OIDC OIDC `json:"oidc,omitzero"`
	// InstanceRole is the role of the ECS instance that this program runs on.
	InstanceRole InstanceRole `json:"instanceRole,omitzero"`
	// ClusterName names the home cluster in ECI. No two clusters of one account may have the same, and it must not change while there
	// are pods. Required.
	ClusterName string `json:"clusterName,omitempty" env:"ECI_CLUSTER_NAME"`
	// VSwitchIDs are where pods get their addresses: the first one that has room. Required.
	VSwitchIDs []string `json:"vSwitchIDs,omitempty" env:"ECI_VSWITCH"`
	// SecurityGroupID is that of pods. Required.
	SecurityGroupID string `json:"securityGroupID,omitempty" env:"ECI_SECURITY_GROUP"`
	// ResourceGroupID is that of pods. Default: that of the account.
	ResourceGroupID string `json:"resourceGroupID,omitempty"`
	// Annotations are those that pods may set, of k8s.aliyun.com/eci-…. Default: none, as they cost money or give rights.
	Annotations []string `json:"annotations,omitempty"`
	// RAMRoles are the roles that a pod may take by the annotation k8s.aliyun.com/eci-ram-role-name. Default: none.
	RAMRoles []string `json:"ramRoles,omitempty"`
	// SecurityGroupIDs are those that a pod may take in the place of SecurityGroupID, by the annotation k8s.aliyun.com/eci-security-group. Default: none.
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`
	// DefaultResources are the cpu and memory of containers that ask for none. Default: 1 CPU and 2Gi.
	DefaultResources corev1.ResourceList `json:"defaultResources,omitempty"`
	// Capacity is what the node offers: the quota of the account, or a part of it. Required, but for ephemeral-storage: 30Gi for each pod.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// Of tests; zero for what package poll has, and the machine's clock.
	busy, rest, idle, seenWithin time.Duration
	now                          func() time.Time
}

func (c Config) clock() func() time.Time {
	if c.now == nil {
		return time.Now
	}
	return c.now
}

// OIDC is a role that is taken by a token of a service account.
type OIDC struct {
	RoleARN     string `json:"roleARN,omitempty" env:"ALIBABA_CLOUD_ROLE_ARN"`
	ProviderARN string `json:"providerARN,omitempty" env:"ALIBABA_CLOUD_OIDC_PROVIDER_ARN"`
	TokenFile   string `json:"tokenFile,omitempty" env:"ALIBABA_CLOUD_OIDC_TOKEN_FILE"`
	// Endpoint is the URL of STS. Default: that of the region.
	Endpoint string `json:"endpoint,omitempty"`
}

// InstanceRole is the role of an ECS instance.
type InstanceRole struct {
	Name string `json:"name,omitempty" env:"ALIBABA_CLOUD_ECS_METADATA"`
	// Endpoint is the URL of the instance's metadata. Default: http://100.100.100.200.
	Endpoint string `json:"endpoint,omitempty"`
}

// format is what a configuration file of this provider looks like.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_ECI", Unversioned: fromTOML}

// LoadConfig returns what the file at path says, and the environment above it. An empty path is no file.
func LoadConfig(path string) (Config, error) {
	c, err := format.Load(path)
	if err != nil {
		return c, err
	}
	return c.withQuotas()
}

// complete fills the defaults of c and refuses what cannot be, with every reason.
func (c Config) complete() (Config, error) {
	var problems []error
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("eci provider: "+format, args...))
	}
	if len(validation.IsDNS1123Label(c.Region)) > 0 {
		problem("region: %q: want that of ECI, such as cn-hangzhou", c.Region)
	}
	if c.Endpoint == "" {
		c.Endpoint = "https://eci." + c.Region + ".aliyuncs.com"
	}
	if u, err := url.Parse(c.Endpoint); err != nil || u.Scheme != "https" || u.Host == "" {
		problem("endpoint: %q: want an URL that begins with https://", c.Endpoint)
	}
	if len(validation.IsDNS1123Label(c.ClusterName)) > 0 {
		problem("clusterName: %q: want a name for the home cluster, such as home-1: set it in the file of --provider-config or in ECI_CLUSTER_NAME", c.ClusterName)
	}
	if len(c.VSwitchIDs) == 0 || len(c.VSwitchIDs) > maxSwitches {
		problem("vSwitchIDs: want 1 to %d IDs of switches, such as vsw-…: not the default of the account", maxSwitches)
	}
	if c.SecurityGroupID == "" {
		problem("securityGroupID: is missing, such as sg-…: ECI would take or make the default of the account")
	}
	for i, name := range c.Annotations {
		if !slices.Contains(known(), name) {
			problem("annotations[%d]: %q: known are %s", i, name, strings.Join(known(), ", "))
		}
	}
	if slices.Contains(c.Annotations, annotationRAMRole) != (len(c.RAMRoles) > 0) {
		problem("ramRoles: name the roles that pods may take, and %s in annotations: both or none", annotationRAMRole)
	}
	if slices.Contains(c.Annotations, annotationSecurityGroup) != (len(c.SecurityGroupIDs) > 0) {
		problem("securityGroupIDs: name the security groups that pods may take, and %s in annotations: both or none", annotationSecurityGroup)
	}
	c.completeCredentials(problem)
	c.completeSizes(problem)
	return c, errors.Join(problems...)
}

func (c *Config) completeCredentials(problem func(string, ...any)) {
	keys := c.AccessKeyID.IsSet() || c.AccessKeySecret.IsSet()
	count := 0
	for _, is := range []bool{keys, c.OIDC.RoleARN != "", c.InstanceRole.Name != ""} {
		if is {
			count++
		}
	}
	switch {
	case count == 0:
		problem("accessKeyID and accessKeySecret are missing: name the files that have them, set ECI_ACCESS_KEY and ECI_SECRET_KEY, or configure oidc or instanceRole")
	case count > 1:
		problem("accessKeyID, oidc and instanceRole: are more than one: remove the others")
	case keys && (!c.AccessKeyID.IsSet() || !c.AccessKeySecret.IsSet()):
		problem("accessKeyID and accessKeySecret: one of both is missing")
	}
	if o := &c.OIDC; o.RoleARN != "" {
		if o.ProviderARN == "" || o.TokenFile == "" {
			problem("oidc: providerARN or tokenFile is missing")
		}
		if o.Endpoint == "" {
			o.Endpoint = "https://sts." + c.Region + ".aliyuncs.com"
		}
		if !strings.HasPrefix(o.Endpoint, "https://") {
			problem("oidc.endpoint: %q: want an URL that begins with https://", o.Endpoint)
		}
	}
	if c.InstanceRole.Name != "" && c.InstanceRole.Endpoint == "" {
		c.InstanceRole.Endpoint = "http://100.100.100.200" // an address of the machine itself
	}
}

func (c *Config) completeSizes(problem func(string, ...any)) {
	if c.DefaultResources == nil {
		c.DefaultResources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("2Gi")}
	}
	if s := sizing.Of(c.DefaultResources); len(c.DefaultResources) != 2 || s.MilliCPU <= 0 || s.Memory <= 0 {
		problem("defaultResources: want cpu and memory, both more than 0")
	} else if _, ok := sizing.Fit(sizes, s); !ok {
		problem("defaultResources: ECI has no size with %s", s)
	}
	if len(c.Capacity) == 0 {
		problem("capacity: is missing: cpu, memory and pods of the quota: set it in the file of --provider-config, or in ECI_QUOTA_CPU, ECI_QUOTA_MEMORY and ECI_QUOTA_POD")
	}
	for name, quantity := range c.Capacity {
		if quantity.Sign() < 0 {
			problem("capacity: %s is %s, want 0 or more", name, quantity.String())
		}
	}
	c.Capacity = storage.Offer(c.Capacity, *resource.NewQuantity(storageGiven*sizing.Gi, resource.BinarySI))
}
