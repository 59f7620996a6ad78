// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// rule is a rule of ECS about the values of a task definition for Fargate.
type rule struct {
	// source is the place of publication of the rule, and date is its date. Each rule gives a ClientException.
	source, date string
	// broken returns the problem of a value that breaks the rule, or "".
	broken func(d *definition) string
}

// maxDefinition is the maximum size of a task definition in bytes.
const maxDefinition = 64 << 10

// rules are the published rules. A definition is rejected with the error of the first rule that it breaks.
var rules = []rule{
	{"floci-io/floci#1269", "2026-06-10", func(d *definition) string {
		return textIf(d.NetworkMode != "awsvpc" || !slices.Equal(d.RequiresCompatibilities, []string{"FARGATE"}), "Fargate only supports network mode 'awsvpc'.")
	}},
	{"klothoplatform/klotho#892", "2024-01-18", func(d *definition) string {
		return textIf(d.CPU == "" || d.Memory == "", "Fargate requires that 'cpu' be defined at the task level.")
	}},
	{"docs.aws.amazon.com: task-cpu-memory-error.html", "2026-11-24", func(d *definition) string {
		return textIf(!hasSize(d.CPU, d.Memory), "No Fargate configuration exists for given values: %s CPU, %s memory.", d.CPU, d.Memory)
	}},
	{"aws/amazon-ecs-cli#184", "2016-12-21", func(d *definition) string { return textIf(len(d.ContainerDefinitions) > 10, "Too many containers.") }},
	{"awsdocs/amazon-ecs-developer-guide#149", "2021-01-21", func(d *definition) string {
		return textIf(d.size > maxDefinition, "Actual length: '%d'. Max allowed length is '%d' bytes.", d.size, maxDefinition)
	}},
	{"docs.aws.amazon.com: API_EphemeralStorage.html", "2026-11-24", func(d *definition) string {
		return textIf(d.EphemeralStorage != nil && (d.EphemeralStorage.SizeInGiB < 21 || d.EphemeralStorage.SizeInGiB > 200), "EphemeralStorage size should be at least 21 and at most 200")
	}},
	{"virtual-kubelet/virtual-kubelet#193", "2018-05-09", func(d *definition) string {
		return d.firstProblem(func(c *containerDefinition) string {
			return textIf(d.ExecutionRoleArn == "" && c.LogConfiguration != nil, "Fargate requires task definition to have execution role ARN to support log driver awslogs.")
		})
	}},
	{"docs.aws.amazon.com: specifying-sensitive-data.html", "2026-11-24", func(d *definition) string {
		return d.firstProblem(func(c *containerDefinition) string {
			return textIf(d.ExecutionRoleArn == "" && len(c.Secrets) > 0, "When you are specifying container secrets, you must also specify a value for 'executionRoleArn'.")
		})
	}},
	{"klothoplatform/klotho#892", "2024-01-18", func(d *definition) string {
		return d.firstProblem(func(c *containerDefinition) string {
			l := c.LogConfiguration
			return textIf(l != nil && l.LogDriver == "awslogs" && (l.Options["awslogs-group"] == "" || l.Options["awslogs-region"] == ""), "Log driver awslogs requires options: awslogs-region, awslogs-group")
		})
	}},
	{"hashicorp/terraform-provider-aws#5950", "2018-09-20", func(d *definition) string {
		return d.firstProblem(func(c *containerDefinition) string {
			return textIf(c.Name == "" || strings.ContainsFunc(c.Name, func(r rune) bool {
				return !(r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
			}), "Container.name contains invalid characters.")
		})
	}},
	{"artilleryio/artillery#591, pulumi/pulumi-awsx#1220", "2018-12-07", func(d *definition) string {
		all, _ := strconv.Atoi(d.Memory)
		return d.firstProblem(func(c *containerDefinition) string {
			return textIf(c.Memory > all, "The 'memory' setting for container '%s' is greater than for the task.", c.Name)
		})
	}},
	{"klothoplatform/klotho#892", "2024-01-18", func(d *definition) string {
		all, _ := strconv.Atoi(d.CPU)
		sum := 0
		for _, c := range d.ContainerDefinitions {
			sum += c.CPU
		}
		return textIf(sum > all, "The sum of all container 'cpu' values cannot be greater than the value of the task 'cpu'.")
	}},
	{"boto/boto3#2436", "2020-05-15", func(d *definition) string {
		return d.firstProblem(func(c *containerDefinition) string {
			for _, dep := range c.DependsOn {
				i := slices.IndexFunc(d.ContainerDefinitions, func(o containerDefinition) bool { return o.Name == dep.ContainerName })
				if i >= 0 && d.ContainerDefinitions[i].isEssential() && (dep.Condition == "SUCCESS" || dep.Condition == "COMPLETE") {
					return "A dependency container with SUCCESS or COMPLETE condition cannot be an essential container"
				}
			}
			return ""
		})
	}},
	{"aws/amazon-ecs-agent#1220", "2018-01-29", func(d *definition) string {
		seen := map[string]bool{}
		return d.firstProblem(func(c *containerDefinition) string {
			for _, p := range c.PortMappings {
				name := fmt.Sprint(p.ContainerPort, "/", p.Protocol)
				if seen[name] {
					return fmt.Sprintf("%s host port '%d' is mapped multiple times in task.", strings.ToUpper(p.Protocol), p.ContainerPort)
				}
				seen[name] = true
			}
			return ""
		})
	}},
	{"aws/amazon-ecs-cli#1014", "2020-04-23", func(d *definition) string {
		return d.firstProblem(func(c *containerDefinition) string {
			for _, p := range c.PortMappings {
				if p.HostPort != 0 && p.HostPort != p.ContainerPort {
					return "When networkMode=awsvpc, the host ports and container ports in port mappings must match."
				}
			}
			return ""
		})
	}},
	{"dagster-io/dagster#11622", "2023-01-11", func(d *definition) string {
		return d.firstProblem(func(c *containerDefinition) string {
			for _, s := range c.Secrets {
				if slices.ContainsFunc(c.Environment, func(e pair) bool { return e.Name == s.Name }) {
					return "The secret name must be unique and not shared with any new or existing environment variables set on the container, such as '" + s.Name + "'."
				}
			}
			return ""
		})
	}},
	{"DefangLabs/defang#729", "2024-10-08", func(d *definition) string {
		return d.firstProblem(func(c *containerDefinition) string {
			return textIf(c.WorkingDirectory != nil && *c.WorkingDirectory == "", "workingDirectory should be at least 1 characters long.")
		})
	}},
	{"ansible-collections/community.aws#1610", "2022-12-01", func(d *definition) string {
		return d.firstProblem(func(c *containerDefinition) string {
			h := c.HealthCheck
			return textIf(h != nil && (h.Interval < 5 || h.Interval > 300 || h.Timeout < 2 || h.Timeout > 60 || h.Retries < 1 || h.Retries > 10 || h.StartPeriod < 0 || h.StartPeriod > 300),
				"a number of the health check of container '%s' is out of its range", c.Name)
		})
	}},
	{"badmintoncryer/cdk-preflight: pf-ecs-mountpoint-source-volume-missing", "2026-11-28", func(d *definition) string {
		return d.firstProblem(func(c *containerDefinition) string {
			for _, m := range c.MountPoints {
				if !slices.ContainsFunc(d.Volumes, func(v volume) bool { return v.Name == m.SourceVolume }) {
					return "Unknown volume '" + m.SourceVolume + "'."
				}
			}
			return ""
		})
	}},
	{"docs.aws.amazon.com: fargate-security-considerations.html", "2026-11-24", func(d *definition) string {
		return d.firstProblem(func(c *containerDefinition) string {
			l := c.LinuxParameters
			return textIf(l != nil && slices.ContainsFunc(l.Capabilities.Add, func(name string) bool { return name != "SYS_PTRACE" }), "Fargate adds the capability SYS_PTRACE alone")
		})
	}},
	// API_ContainerDefinition.html allows 2 to 120 seconds for stopTimeout, as for startTimeout.
	{"docs.aws.amazon.com: API_ContainerDefinition.html (stopTimeout)", "2026-11-28", func(d *definition) string {
		return d.firstProblem(func(c *containerDefinition) string {
			return textIf(c.StopTimeout != nil && (*c.StopTimeout < 2 || *c.StopTimeout > 120), "stopTimeout of container '%s' is out of its range of 2 to 120", c.Name)
		})
	}},
	{"docs.aws.amazon.com: API_Volume.html (configuredAtLaunch)", "2026-11-28", func(d *definition) string {
		launched := 0
		for _, v := range d.Volumes {
			if v.ConfiguredAtLaunch {
				launched++
			}
		}
		return textIf(launched > 1, "A task definition can have one volume that is configured at launch.")
	}},
	{"docs.aws.amazon.com: API_EFSVolumeConfiguration.html, API_EFSAuthorizationConfig.html", "2026-11-28", func(d *definition) string {
		for _, v := range d.Volumes {
			e := v.EfsVolumeConfiguration
			switch {
			case e == nil || e.AuthorizationConfig == nil:
			case e.TransitEncryption != "ENABLED":
				return "Transit encryption must be enabled for the access point or IAM of volume '" + v.Name + "'."
			case e.AuthorizationConfig.AccessPointID != "" && e.RootDirectory != "" && e.RootDirectory != "/":
				return "The root directory of volume '" + v.Name + "' must be omitted or / with an access point."
			}
		}
		return ""
	}},
}

// textIf returns a text if a condition is true.
func textIf(is bool, format string, args ...any) string {
	if !is {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// firstProblem returns the first problem that check finds in a container.
func (d *definition) firstProblem(check func(c *containerDefinition) string) string {
	for i := range d.ContainerDefinitions {
		if problem := check(&d.ContainerDefinitions[i]); problem != "" {
			return problem
		}
	}
	return ""
}
