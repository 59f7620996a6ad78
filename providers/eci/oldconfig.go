// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/oldfile"
)

// fromTOML reads the file that alibabacloud-eci has, with the defaults of that.
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

// quotas are variables of alibabacloud-eci for amounts, which as a map have none of their own.
var quotas = map[string]corev1.ResourceName{
	"ECI_QUOTA_CPU": corev1.ResourceCPU, "ECI_QUOTA_MEMORY": corev1.ResourceMemory, "ECI_QUOTA_POD": corev1.ResourcePods,
}

// withQuotas takes the capacity from the environment, which is above the file.
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
