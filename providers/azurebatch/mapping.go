// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/batch/azbatch"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/azurebatch/internal/task"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/podblobs"
)

const (
	// longest is the maximum lifetime of a task. Source: the documentation of tasks in Batch, 2026-01-12.
	longest = 180 * 24 * time.Hour
	// retention is how long the directory of a task stays on its machine. It is short because everything
	// important is in blobs.
	retention = 10 * time.Minute
	// endTime is how long a task may take to end after the grace period of its pod.
	endTime = 20 * time.Second
)

// uidForm matches the UIDs that the ID of a task can have after "vk-".
var uidForm = regexp.MustCompile(`^[a-z0-9_-]{1,61}$`)

// taskID returns the permanent ID of a pod's task.
func taskID(uid types.UID) string { return "vk-" + string(uid) }

// displayName names the owner and the pod of a task; identify is the reverse. None of the names has a slash.
func displayName(o identity.Owner, pod *corev1.Pod) string {
	return strings.Join([]string{"virtual-kubelet", o.Cluster, o.Node, pod.Namespace, pod.Name}, "/")
}

func identifyTask(o identity.Owner, t azbatch.Task) (identity.Pod, bool) {
	p := strings.Split(valueOf(t.DisplayName), "/")
	uid, ours := strings.CutPrefix(valueOf(t.ID), "vk-")
	if !ours || len(p) != 5 || p[0] != "virtual-kubelet" || p[1] != o.Cluster || p[2] != o.Node {
		return identity.Pod{}, false
	}
	return identity.Pod{Namespace: p[3], Name: p[4], UID: types.UID(uid)}, true
}

// refusePod refuses a pod that tasks cannot run.
func (c Config) refusePod(pod *corev1.Pod) error {
	if !uidForm.MatchString(string(pod.UID)) && pod.UID != "" {
		return errdefs.InvalidInputf("metadata.uid: %q: cannot be in the ID of a task", pod.UID)
	}
	return service.Containers(pod, func(k *corev1.Container, _ bool, at *field.Path) error {
		for _, list := range []corev1.ResourceList{k.Resources.Limits, k.Resources.Requests} {
			for name := range list {
				if strings.Contains(string(name), "/") && name != c.GPUs.Resource && !strings.HasPrefix(string(name), "hugepages") {
					return errdefs.InvalidInputf("%s: %s: the machines of the pool offer no such devices to pods", at.Child("resources"), name)
				}
			}
		}
		if _, err := podspec.RegistryImage(k.Image); err != nil && c.Containers != programs {
			return errdefs.InvalidInputf("%s: %w", at.Child("image"), err)
		}
		return nil
	})
}

// slotsOf returns the number of a machine's slots that a pod needs, by its largest share of CPU, memory or GPUs.
func (m *machines) slotsOf(pod *corev1.Pod) (int32, error) {
	asked := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	gpus := asked[m.gpus.Resource]
	slots := int64(1)
	for _, r := range []struct {
		name      corev1.ResourceName
		want, has int64
	}{{corev1.ResourceCPU, asked.Cpu().MilliValue(), m.each.milliCPU}, {corev1.ResourceMemory, asked.Memory().Value(), m.each.memory}, {m.gpus.Resource, gpus.Value(), m.gpus.PerNode}} {
		if r.has == 0 {
			continue // the resource is unknown
		}
		if r.want > r.has {
			return 0, errdefs.InvalidInputf("spec.containers: the pod requests more %s than one machine of pool %s has, which is a %s", r.name, m.pool, m.vmSize)
		}
		slots = max(slots, (r.want*m.slotsEach+r.has-1)/r.has)
	}
	return int32(min(slots, m.slotsEach)), nil //nolint:gosec // a machine has 256 slots at most
}

// taskContent returns the task of a pod. It has no secrets, because every reader of the job can read it.
func (d *driver) taskContent(pod *corev1.Pod, program string, slots int32) azbatch.CreateTaskContent {
	life := longest
	if s := pod.Spec.ActiveDeadlineSeconds; s != nil { // the program enforces it to the second
		life = min(life, time.Duration(*s)*time.Second+podspec.Grace(pod)+5*time.Minute)
	}
	file := func(blob, name, mode string) azbatch.ResourceFile {
		return azbatch.ResourceFile{
			HTTPURL: new(d.config.Storage.ContainerURL + "/" + blob), FilePath: new(name), FileMode: new(mode),
			IdentityReference: &azbatch.NodeIdentityReference{ResourceID: new(d.config.Storage.Identity)},
		}
	}
	return azbatch.CreateTaskContent{
		ID: new(taskID(pod.UID)), DisplayName: new(displayName(d.owner, pod)), CommandLine: new(task.CommandLine), RequiredSlots: &slots,
		ResourceFiles: []azbatch.ResourceFile{file(program, podblobs.ProgramFile, "0755"), file(podblobs.BundleName(d.job, pod.UID), podblobs.PackageFile, "0600")},
		Constraints:   &azbatch.TaskConstraints{MaxTaskRetryCount: new(int32(0)), RetentionTime: isoDuration(retention), MaxWallClockTime: isoDuration(life)},
		UserIdentity: &azbatch.UserIdentity{AutoUser: &azbatch.AutoUserSpecification{
			Scope: new(azbatch.AutoUserScopePool), ElevationLevel: new(azbatch.ElevationLevelAdmin),
		}},
	}
}

// jobContent returns the job of this node.
func (d *driver) jobContent() azbatch.CreateJobContent {
	return azbatch.CreateJobContent{
		ID: &d.job, DisplayName: new(fmt.Sprintf("virtual-kubelet %s/%s", d.owner.Cluster, d.owner.Node)),
		PoolInfo: &azbatch.PoolInfo{PoolID: &d.config.Pool}, OnAllTasksComplete: new(azbatch.OnAllTasksCompleteNoAction),
		Metadata: []azbatch.MetadataItem{{Name: new(identity.TagCluster), Value: &d.owner.Cluster}, {Name: new(identity.TagNode), Value: &d.owner.Node}},
	}
}
