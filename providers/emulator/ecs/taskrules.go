// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"cmp"
	"fmt"
	"slices"
)

// taskRequest is a request for a task.
type taskRequest struct {
	Cluster, TaskDefinition, ClientToken, Group, StartedBy, LaunchType string

	Count                    *int
	EnableExecuteCommand     bool
	CapacityProviderStrategy []struct{ CapacityProvider string }
	NetworkConfiguration     *struct {
		AwsvpcConfiguration *struct{ Subnets, SecurityGroups []string }
	}
	Tags                 []any
	VolumeConfigurations []volumeConfiguration
}

// volumeConfiguration is a volume that ECS makes with a task.
type volumeConfiguration struct {
	Name             string
	ManagedEBSVolume *struct {
		SizeInGiB, Iops, Throughput     int
		SnapshotID, VolumeType, RoleArn string
	}
}

// taskRule is a rule of ECS about the values of a request for a task on Fargate.
type taskRule struct {
	// source is the place of publication of the rule, and date is its date. Each rule gives an
	// InvalidParameterException.
	source, date string
	// broken returns the problem of a value that breaks the rule in a cluster with these capacity providers, or
	// "".
	broken func(providers []string, in *taskRequest) string
}

// maxGroup is the maximum length of the name of a task group, in characters.
const maxGroup = 255

// taskRules are the published rules. The first rule that a request breaks refuses it.
var taskRules = []taskRule{
	{"docs.aws.amazon.com: API_RunTask.html (launchType)", "2026-11-28", func(_ []string, in *taskRequest) string {
		return textIf(in.LaunchType != "" && len(in.CapacityProviderStrategy) > 0, "Specifying both a launch type and capacity provider strategy is not supported. Remove one and try again.")
	}},
	// Without both, the default strategy of the cluster applies, else the launch type EC2. Clusters here have no default strategy.
	{"docs.aws.amazon.com: API_RunTask.html (capacityProviderStrategy)", "2026-11-28", func(_ []string, in *taskRequest) string {
		return textIf(in.LaunchType != "FARGATE" && len(in.CapacityProviderStrategy) == 0, "No Container Instances were found in your cluster.")
	}},
	{"dask/dask-cloudprovider#328", "2021-12-20", func(providers []string, in *taskRequest) string {
		return textIf(slices.ContainsFunc(in.CapacityProviderStrategy, func(i struct{ CapacityProvider string }) bool {
			return !slices.Contains(providers, i.CapacityProvider)
		}),
			"The specified capacity provider strategy cannot contain a capacity provider that is not associated with the cluster. Associate the capacity provider with the cluster or specify a valid capacity provider and try again.")
	}},
	{"docs.aws.amazon.com: task-groups.html", "2026-11-28", func(_ []string, in *taskRequest) string {
		return textIf(len(in.Group) > maxGroup, "Group name is longer than %d characters.", maxGroup)
	}},
	{"docs.aws.amazon.com: API_RunTask.html (volumeConfigurations)", "2026-11-28", func(_ []string, in *taskRequest) string {
		return textIf(len(in.VolumeConfigurations) > 1, "Only one volume can be configured at launch.")
	}},
	{"docs.aws.amazon.com: API_TaskManagedEBSVolumeConfiguration.html", "2026-11-28", func(_ []string, in *taskRequest) string {
		for _, v := range in.VolumeConfigurations {
			if problem := v.brokenRule(); problem != "" {
				return "Volume '" + v.Name + "': " + problem
			}
		}
		return ""
	}},
}

// ebsSizes are the minimum and maximum GiB of each type of volume.
var ebsSizes = map[string][2]int{
	"gp2": {1, 16384}, "gp3": {1, 16384}, "io1": {4, 16384}, "io2": {4, 16384}, "sc1": {125, 16384}, "st1": {125, 16384}, "standard": {1, 1024},
}

// brokenRule returns the rule that a volume breaks, or "".
func (v volumeConfiguration) brokenRule() string {
	e := v.ManagedEBSVolume
	if e == nil {
		return "managedEBSVolume is required."
	}
	kind := cmp.Or(e.VolumeType, "gp3")
	sizes, known := ebsSizes[kind]
	switch {
	case !known:
		return "there is no volume type " + kind
	case e.SizeInGiB == 0 && e.SnapshotID == "":
		return "a size or a snapshot is required."
	case e.SizeInGiB != 0 && (e.SizeInGiB < sizes[0] || e.SizeInGiB > sizes[1]):
		return fmt.Sprintf("the type %s has %d to %d GiB.", kind, sizes[0], sizes[1])
	case (kind == "io1" || kind == "io2") && e.Iops == 0:
		return "iops is required for io1 and io2."
	case e.Throughput != 0 && kind != "gp3":
		return "throughput is supported for gp3 only."
	}
	return ""
}
