// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

const (
	// usageWithin is how far back usage is read. Container Insights writes the usage once a minute, with a
	// delay.
	usageWithin = 3 * time.Minute
	// mostUsagePages is the maximum number of answers for one query. Each answer has 10,000 containers or 1 MiB.
	mostUsagePages = 50
	// cpuUnits is how many units of CPU ECS counts for a core.
	cpuUnits = 1024
)

// Stats implements service.Measurer with the last figures of Container Insights, if the configuration enables
// them.
func (d *driver) Stats(ctx context.Context, of []service.Target[ecstypes.Task]) (all []statsv1alpha1.PodStats, err error) {
	if !d.config.Stats || len(of) == 0 {
		return nil, nil
	}
	used, err := d.client.used(ctx, time.Now().Add(-usageWithin))
	if err != nil {
		return nil, err
	}
	for _, t := range of {
		if t.Pod.Status.Phase == corev1.PodRunning {
			all = append(all, podStats(t.Pod, last(aws.ToString(t.Instance.TaskArn)), used))
		}
	}
	return all, nil
}

// used returns the newest events of all containers of the cluster since a time, by the ID of the task and the name of the container.
func (c *client) used(ctx context.Context, since time.Time) (map[string]usage, error) {
	group := "/aws/ecs/containerinsights/" + last(c.cluster) + "/performance"
	in := &cloudwatchlogs.FilterLogEventsInput{
		LogGroupName: &group, FilterPattern: aws.String(`{ $.Type = "Container" }`), StartTime: aws.Int64(since.UnixMilli()),
	}
	newest := map[string]usage{}
	for range mostUsagePages {
		out, err := c.logs.FilterLogEvents(ctx, in)
		if err != nil {
			err = kind(err, "read the usage in "+group)
			if errdefs.IsNotFound(err) {
				err = fmt.Errorf("the cluster of ECS writes no usage: switch Container Insights on there, or stats off: %w", err)
			}
			return nil, err
		}
		for _, e := range out.Events {
			var u usage
			if json.Unmarshal([]byte(aws.ToString(e.Message)), &u) != nil {
				continue // not an event of a container
			}
			if key := u.TaskID + "/" + u.ContainerName; u.Timestamp >= newest[key].Timestamp {
				newest[key] = u
			}
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			break
		}
	}
	return newest, nil
}

// podStats returns the usage of a pod. Containers without a measurement have no values.
func podStats(pod *corev1.Pod, task string, used map[string]usage) statsv1alpha1.PodStats {
	return service.PodStats(pod, func(c *statsv1alpha1.ContainerStats) {
		u := used[task+"/"+c.Name]
		if u.CPUUtilized == nil || u.MemoryUtilized == nil {
			return
		}
		at := metav1.NewTime(time.UnixMilli(u.Timestamp))
		n, m := uint64(*u.CPUUtilized/cpuUnits*1e9), uint64(*u.MemoryUtilized*(1<<20))
		c.CPU = &statsv1alpha1.CPUStats{Time: at, UsageNanoCores: &n}
		c.Memory = &statsv1alpha1.MemoryStats{Time: at, UsageBytes: &m, WorkingSetBytes: &m}
	})
}
