// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// maxSwitches is the maximum number of switches in a request, and maxInstanceTypes the maximum number of
// instance types.
const maxSwitches, maxInstanceTypes = 10, 5

// complete fills the defaults of c, and refuses invalid values with every reason.
func (c Config) complete() (Config, error) {
	problems := config.Problems{Provider: "eci"}
	problem := problems.Add
	if len(validation.IsDNS1123Label(c.Region)) > 0 {
		problem("region: %q: want that of ECI, such as cn-hangzhou", c.Region)
	}
	c.Endpoint = cmp.Or(c.Endpoint, "https://eci."+c.Region+".aliyuncs.com")
	problems.HTTPS("endpoint", c.Endpoint)
	problems.ClusterName(c.ClusterName, "ECI_CLUSTER_NAME")
	if len(c.VSwitchIDs) == 0 || len(c.VSwitchIDs) > maxSwitches {
		problem("vSwitchIDs: want 1 to %d IDs of switches, such as vsw-…: not the default of the account", maxSwitches)
	}
	if c.SecurityGroupID == "" {
		problem("securityGroupID: is missing, such as sg-…: ECI would take or make the default of the account")
	}
	problems.Each("annotations", c.Annotations, func(name string) bool { return setters[name] != nil }, "one of "+strings.Join(known(), ", "))
	if slices.Contains(c.Annotations, annotationRAMRole) != (len(c.RAMRoles) > 0) {
		problem("ramRoles: name the roles that pods may take, and %s in annotations: both or none", annotationRAMRole)
	}
	if slices.Contains(c.Annotations, annotationSecurityGroup) != (len(c.SecurityGroupIDs) > 0) {
		problem("securityGroupIDs: name the security groups that pods may take, and %s in annotations: both or none", annotationSecurityGroup)
	}
	for i, a := range c.ACRInstances {
		if a.ID == "" || (a.ServiceRole == "") != (a.UserRole == "") {
			problem("acrInstances[%d]: want the id of an instance, such as cri-…, and both serviceRole and userRole or none", i)
		}
	}
	if len(c.GPUInstanceTypes) > maxInstanceTypes || slices.ContainsFunc(c.GPUInstanceTypes, func(name string) bool { return !strings.HasPrefix(name, "ecs.") }) {
		problem("gpuInstanceTypes: %s: want at most %d instance types, such as ecs.gn6i-c4g1.xlarge", strings.Join(c.GPUInstanceTypes, ", "), maxInstanceTypes)
	}
	problems.Wait("execProbeEvery", &c.ExecProbeEvery, execProbeEvery)
	c.completeCredentials(&problems)
	c.completeSizes(problem)
	return c, problems.Err()
}

func (c *Config) completeCredentials(problems *config.Problems) {
	problem := problems.Add
	keys := c.AccessKeyID.IsSet() || c.AccessKeySecret.IsSet()
	oidc, role := c.OIDC.RoleARN != "", c.InstanceRole.Name != ""
	switch {
	case !keys && !oidc && !role:
		problem("accessKeyID and accessKeySecret are missing: name the files that have them, set ECI_ACCESS_KEY and ECI_SECRET_KEY, or configure oidc or instanceRole")
	case keys && oidc || keys && role || oidc && role:
		problem("accessKeyID, oidc and instanceRole: are more than one: remove the others")
	case keys && (!c.AccessKeyID.IsSet() || !c.AccessKeySecret.IsSet()):
		problem("accessKeyID and accessKeySecret: one of them is missing")
	}
	if o := &c.OIDC; o.RoleARN != "" {
		if o.ProviderARN == "" || o.TokenFile == "" {
			problem("oidc: providerARN or tokenFile is missing")
		}
		o.findEndpoint(c.Region)
		problems.HTTPS("oidc.endpoint", o.Endpoint)
	}
	if c.InstanceRole.Name != "" {
		c.InstanceRole.Endpoint = cmp.Or(c.InstanceRole.Endpoint, "http://100.100.100.200") // an address of the machine itself
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
