// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"path/filepath"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stats"
)

// GetStatsSummary returns the usage of the node and its pods.
func (r *Runtime) GetStatsSummary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	return r.stats.Summary(ctx)
}

// GetMetricsResource returns the metrics for metrics-server.
func (r *Runtime) GetMetricsResource(ctx context.Context) ([]*dto.MetricFamily, error) {
	return r.stats.Metrics(ctx)
}

// newStats returns the measurement of this node's pods.
func (r *Runtime) newStats() *stats.Stats {
	return stats.New(stats.Config{
		Runtime: r.cfg.Runtime, Images: r.cfg.Images,
		Node: r.cfg.Node.Name, Labels: map[string]string{criconfig.LabelNode: r.cfg.Node.Name},
		Root: r.cfg.Root, Logs: r.logsOf, Volumes: r.volumeUse,
	})
}

// logsOf is the directory of the logs of a container.
func (r *Runtime) logsOf(pod statsv1alpha1.PodReference, container string) string {
	meta := metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: types.UID(pod.UID)}
	return filepath.Join(r.settings.LogDirectory(&corev1.Pod{ObjectMeta: meta}), container)
}

const (
	// usageFresh bounds the age of volume figures, as in a kubelet.
	usageFresh = time.Minute
	// usagePatience bounds a caller's wait for newer figures.
	usagePatience = 100 * time.Millisecond
)

// volumeUse returns the use of a pod's volumes, or nothing if it is unknown.
func (r *Runtime) volumeUse(ctx context.Context, ref statsv1alpha1.PodReference) ([]stats.Volume, error) {
	_, pod, err := r.shownPod(ref.Namespace, ref.Name)
	if err != nil || string(pod.UID) != ref.UID {
		return nil, nil
	}
	patience, cancel := context.WithTimeout(ctx, usagePatience)
	defer cancel()
	use, err := r.meter.volumeUse(patience, pod, usageFresh)
	if err != nil {
		return nil, err
	}
	var all []stats.Volume
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		used, measured := use[v.Name]
		if !measured {
			continue
		}
		one := stats.Volume{Name: v.Name, Bytes: uint64(max(used.Bytes, 0)), Inodes: uint64(max(used.Inodes, 0))}
		if v.PersistentVolumeClaim != nil {
			one.Claim = v.PersistentVolumeClaim.ClaimName
		}
		one.Ephemeral = one.Claim == "" && !used.Memory
		all = append(all, one)
	}
	return all, nil
}

// versionTime bounds the wait of a starting node for a possibly stopped runtime.
const versionTime = 5 * time.Second

// runtimeVersion returns a kubelet's text for the runtime, such as containerd://2.1.4, or "" if the runtime does
// not answer.
func (r *Runtime) runtimeVersion(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	version, err := r.cfg.Runtime.Version(ctx, "v1")
	if err != nil {
		log.G(ctx).WithError(err).Info("the node does not say which container runtime it has: that does not answer yet")
		return ""
	}
	return version.GetRuntimeName() + "://" + version.GetRuntimeVersion()
}

// ConfigureNode writes the properties of the machine into n, where n has no value: capacity, allocatable
// amounts, system information, and the version of the container runtime, if it answers now.
func (r *Runtime) ConfigureNode(ctx context.Context, n *corev1.Node) {
	r.fillCapacity(&n.Status)
	is, info := stats.NodeInfo(), &n.Status.NodeInfo
	is.ContainerRuntimeVersion = r.runtimeVersion(ctx)
	for to, value := range map[*string]string{
		&info.Architecture: is.Architecture, &info.OperatingSystem: is.OperatingSystem, &info.KernelVersion: is.KernelVersion,
		&info.OSImage: is.OSImage, &info.MachineID: is.MachineID, &info.SystemUUID: is.SystemUUID, &info.BootID: is.BootID,
		&info.ContainerRuntimeVersion: is.ContainerRuntimeVersion,
	} {
		if *to == "" {
			*to = value
		}
	}
	declareFeatures(n)
	wellConditions(n, time.Now())
}
