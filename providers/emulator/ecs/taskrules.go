// SPDX-License-Identifier: Apache-2.0

package ecs

import "slices"

// taskRequest is a request for a task.
type taskRequest struct {
	Cluster, TaskDefinition, ClientToken, Group, StartedBy, LaunchType string

	Count                    *int
	EnableExecuteCommand     bool
	CapacityProviderStrategy []struct{ CapacityProvider string }
	NetworkConfiguration     *struct {
		AwsvpcConfiguration *struct{ Subnets, SecurityGroups []string }
	}
	Tags []any
}

// taskRule is one that ECS keeps between the values of a request for a task on Fargate.
type taskRule struct {
	// source is where somebody published the rule, and date is when. Each is an InvalidParameterException.
	source, date string
	// broken says which value breaks the rule in a cluster that has these capacity providers; "" is none.
	broken func(providers []string, in *taskRequest) string
}

// maxGroup is how many characters the name of a task group has at most.
const maxGroup = 255

// taskRules are those that are published. A request that breaks one is refused by the first.
var taskRules = []taskRule{
	{"docs.aws.amazon.com: API_RunTask.html (launchType)", "2026-11-28", func(_ []string, in *taskRequest) string {
		return said(in.LaunchType != "" && len(in.CapacityProviderStrategy) > 0, "Specifying both a launch type and capacity provider strategy is not supported. Remove one and try again.")
	}},
	// Without both the strategy of the cluster counts, which clusters do not have here, and then the launch type EC2.
	{"docs.aws.amazon.com: API_RunTask.html (capacityProviderStrategy)", "2026-11-28", func(_ []string, in *taskRequest) string {
		return said(in.LaunchType != "FARGATE" && len(in.CapacityProviderStrategy) == 0, "No Container Instances were found in your cluster.")
	}},
	{"dask/dask-cloudprovider#328", "2021-12-20", func(providers []string, in *taskRequest) string {
		return said(slices.ContainsFunc(in.CapacityProviderStrategy, func(i struct{ CapacityProvider string }) bool {
			return !slices.Contains(providers, i.CapacityProvider)
		}),
			"The specified capacity provider strategy cannot contain a capacity provider that is not associated with the cluster. Associate the capacity provider with the cluster or specify a valid capacity provider and try again.")
	}},
	{"docs.aws.amazon.com: task-groups.html", "2026-11-28", func(_ []string, in *taskRequest) string {
		return said(len(in.Group) > maxGroup, "Group name is longer than %d characters.", maxGroup)
	}},
}
