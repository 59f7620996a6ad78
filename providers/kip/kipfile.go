// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/ec2"
)

// kipFile is the provider.yaml of Elotl Kip. Source: pkg/server/config.go of elotl/kip at 739ad20 (2021-09-09).
type kipFile struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Cloud      struct {
		AWS *struct {
			Region, VPCID, SubnetID, EndpointURL         string
			AccessKeyID, SecretAccessKey, ECSClusterName string
			InsecureTLSSkipVerify                        bool
		} `json:"aws"`
		GCE, Azure map[string]any
	} `json:"cloud"`
	Etcd    map[string]any `json:"etcd"`
	Kubelet struct {
		CPU, Memory, Pods string
		Capacity          map[corev1.ResourceName]resource.Quantity
		Labels            map[string]string
	} `json:"kubelet"`
	Cells struct {
		BootImageSpec                          map[string]string
		DefaultInstanceType, DefaultVolumeSize string
		StandbyCells                           []struct {
			InstanceType string
			Count        int64
			Spot         bool
		}
		CloudInitFile                   string
		Itzo, CellConfig, HealthCheck   map[string]any
		ExtraCIDRs, ExtraSecurityGroups []string
		Nametag                         string
		StatusInterval                  int64
		PrivateIPOnly                   bool
		DefaultIAMPermissions           string
		UseCloudParameterStore          bool
	} `json:"cells"`
}

// LoadConfig returns the configuration in the file at path. Environment variables override the file. An empty path is no file. LoadConfig also reads the
// provider.yaml of Elotl Kip.
func LoadConfig(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if path == "" || err != nil || !isKipFile(data) {
		return format.Load(path)
	}
	c, err := fromKip(path, data)
	if err != nil {
		return Config{}, err
	}
	above := format
	above.Default = func() Config { return c }
	return above.Load("")
}

// isKipFile reports whether a file is a provider.yaml of Kip, by its top-level fields.
func isKipFile(data []byte) bool {
	var top struct {
		Kind         string `json:"kind"`
		Cloud, Cells any
	}
	return yaml.Unmarshal(data, &top) == nil && top.Kind != Kind && (top.Cloud != nil || top.Cells != nil)
}

// fromKip reads the provider.yaml of Kip. It refuses each unsupported field by name, with the reason.
func fromKip(name string, data []byte) (c Config, err error) {
	var f kipFile
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return c, fmt.Errorf("%s: read it as a provider.yaml of Kip: %w", name, err)
	}
	problems := config.Problems{Provider: "kip"}
	refuse := func(is bool, field, why string) {
		if is {
			problems.Add("%s: %s: %s", name, field, why)
		}
	}
	quantity := func(field, text string) resource.Quantity {
		q, err := resource.ParseQuantity(text)
		refuse(err != nil, field, fmt.Sprintf("%q is no quantity", text))
		return q
	}
	refuse(f.Cloud.AWS == nil, "cloud.aws", "is missing: of the clouds of Kip this provider has EC2")
	refuse(f.Cloud.GCE != nil, "cloud.gce", "this provider has no Google Compute Engine")
	refuse(f.Cloud.Azure != nil, "cloud.azure", "this provider has no Azure: the provider aci has")
	refuse(f.Etcd["client"] != nil, "etcd.client", "state is the tags of machines: remove it")
	cells := f.Cells
	images := strings.Fields(cells.BootImageSpec["imageIDs"])
	refuse(cells.Itzo != nil, "cells.itzo", "the agent is in the image: remove it")
	refuse(cells.CellConfig != nil, "cells.cellConfig", "the agent has no such settings: remove it")
	refuse(cells.UseCloudParameterStore, "cells.useCloudParameterStore", "user data have nothing secret for long: remove it")
	refuse(cells.CloudInitFile != "", "cells.cloudInitFile", "the agent reads the user data itself: put files and programs into the image")
	refuse(len(cells.ExtraCIDRs) > 0, "cells.extraCIDRs", "this provider makes no security groups: name one that lets the node reach port 6421")
	refuse(len(f.Kubelet.Labels) > 0, "kubelet.labels", "set --node-labels or the labels of the node")
	refuse(len(images) == 0, "cells.bootImageSpec.imageIDs", "name an image with the agent: those of Elotl are gone, and images are not looked for")
	if aws := f.Cloud.AWS; aws != nil {
		refuse(aws.AccessKeyID != "" || aws.SecretAccessKey != "", "cloud.aws.accessKeyID", "keys are found as the tools of AWS find them, as in AWS_ACCESS_KEY_ID: remove it")
		refuse(aws.ECSClusterName != "", "cloud.aws.ecsClusterName", "the provider fargate has ECS")
		refuse(aws.InsecureTLSSkipVerify, "cloud.aws.insecureTLSSkipVerify", "name the authority in AWS_CA_BUNDLE")
		c.EC2 = &ec2.Config{
			Region: aws.Region, Endpoint: aws.EndpointURL, SubnetID: aws.SubnetID, SecurityGroups: cells.ExtraSecurityGroups,
			InstanceProfile: cells.DefaultIAMPermissions,
		}
	}
	if err := problems.Err(); err != nil {
		return Config{}, err
	}
	c.Image = images[0]
	c.DefaultType, c.PrivateIPOnly = cells.DefaultInstanceType, cells.PrivateIPOnly
	if cells.DefaultVolumeSize != "" {
		q := quantity("cells.defaultVolumeSize", cells.DefaultVolumeSize)
		c.VolumeGiB = (q.Value() + 1<<30 - 1) >> 30
	}
	for _, s := range cells.StandbyCells {
		c.Standby = append(c.Standby, Standby{Type: s.InstanceType, Count: s.Count, Spot: s.Spot})
	}
	if cells.Nametag != "" {
		c.Tags = map[string]string{"KipNametag": cells.Nametag}
	}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: f.Kubelet.CPU, corev1.ResourceMemory: f.Kubelet.Memory, corev1.ResourcePods: f.Kubelet.Pods} {
		if text != "" {
			c.offer(name, quantity("kubelet."+string(name), text))
		}
	}
	for name, q := range f.Kubelet.Capacity {
		c.offer(name, q)
	}
	if pods, is := c.Capacity[corev1.ResourcePods]; is {
		c.MaxMachines = pods.Value()
		for _, s := range c.Standby {
			c.MaxMachines += s.Count
		}
	}
	return c, problems.Err()
}

// offer sets the capacity of a resource.
func (c *Config) offer(name corev1.ResourceName, q resource.Quantity) {
	if c.Capacity == nil {
		c.Capacity = corev1.ResourceList{}
	}
	c.Capacity[name] = q
}
