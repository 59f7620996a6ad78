// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/oldfile"
)

// fromTOML reads the file that aws-fargate has, with the defaults of that.
func fromTOML(name string, data []byte) (Config, error) {
	c := Config{Capacity: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("20"), corev1.ResourceMemory: resource.MustParse("40Gi"), corev1.ResourcePods: resource.MustParse("20"),
	}}
	err := oldfile.Read(name, data, map[string]oldfile.Setter{
		"Region": oldfile.Text(&c.Region), "ClusterName": oldfile.Text(&c.Cluster), "Subnets": oldfile.List(&c.Subnets),
		"SecurityGroups": oldfile.List(&c.SecurityGroups), "AssignPublicIPv4Address": oldfile.Bool(&c.PublicIP),
		"ExecutionRoleArn": oldfile.Text(&c.ExecutionRole), "CloudWatchLogGroupName": oldfile.Text(&c.LogGroup),
		"PlatformVersion": oldfile.Text(&c.PlatformVersion), "OperatingSystem": oldfile.Linux,
		"CPU": oldfile.Resource(c.Capacity, corev1.ResourceCPU), "Memory": oldfile.Resource(c.Capacity, corev1.ResourceMemory),
		"Pods":    oldfile.Resource(c.Capacity, corev1.ResourcePods),
		"Storage": oldfile.Ignore, // a resource called storage, for which no pod asks
	})
	return c, err
}
