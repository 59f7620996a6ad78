// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

const (
	labelType     = "virtual-node.interlink/type"
	taintUpstream = "virtual-node.interlink/no-schedule"
	taintOwn      = "virtual-kubelet.io/provider"
)

// firstPing bounds how long the registration of the node waits for the resources of the plugin.
const firstPing = 5 * time.Second

// ConfigureNode implements service.NodeConfigurer. The node offers the resources that the plugin reports, or else the configured
// resources.
func (d *driver) ConfigureNode(ctx context.Context, n *corev1.Node) {
	bounded, cancel := context.WithTimeout(ctx, firstPing)
	defer cancel()
	ping, err := d.client.ping(bounded)
	if err != nil {
		log.G(ctx).WithError(err).Warn("the plugin of interLink does not report its resources yet")
	}
	capacity, taints := d.readReport(ctx, ping)
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[labelType] = "virtual-kubelet"
	maps.Copy(n.Labels, d.config.Labels)
	if d.config.upstream && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintOwn }) {
		// pods for interLink's own node tolerate taintUpstream
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintOwn })
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taintUpstream, Value: "true", Effect: corev1.TaintEffectNoSchedule})
	}
	n.Spec.Taints = distinct(slices.Concat(n.Spec.Taints, d.config.Taints, taints))
	n.Status.Capacity, n.Status.Allocatable = capacity, capacity.DeepCopy()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taints = taints
}

// Ping implements service.Pinger. The server pings its plugin.
func (d *driver) Ping(ctx context.Context) error {
	ping, err := d.client.ping(ctx)
	if err != nil {
		return err
	}
	capacity, taints := d.readReport(ctx, ping)
	if ping.Resources != nil { // otherwise the last reported capacity stays
		d.offer(capacity)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(taints, d.taints) {
		log.G(ctx).Warn("The plugin of interLink tells other taints now: the node has them after its next start")
		d.taints = taints
	}
	return nil
}

// readReport returns the capacity and the taints in a report of the plugin. It logs each wrong value once.
func (d *driver) readReport(ctx context.Context, ping wire.Ping) (corev1.ResourceList, []corev1.Taint) {
	capacity, wrong := d.config.capacity(ping.Resources)
	taints, more := taintsOf(ping.Taints)
	wrong = append(wrong, more...)
	slices.Sort(wrong)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range wrong {
		if !slices.Contains(d.wrong, w) {
			log.G(ctx).Warn("interLink: the plugin tells " + w)
		}
	}
	d.wrong = wrong
	return capacity, taints
}

// capacity returns the capacity of the node from the report of a plugin and the configuration. Unreadable
// quantities are left out and returned in wrong.
func (c Config) capacity(said *wire.Resources) (all corev1.ResourceList, wrong []string) {
	all = c.Capacity.DeepCopy()
	if said == nil {
		return all, nil
	}
	set := func(name corev1.ResourceName, text string) {
		if text == "" {
			return
		}
		quantity, err := resource.ParseQuantity(text)
		if err != nil || quantity.Sign() < 0 || strings.TrimSpace(string(name)) == "" {
			wrong = append(wrong, fmt.Sprintf("%q for the resource %q, which is no quantity", words(text), words(string(name))))
			return
		}
		if quantity.MilliValue()%1000 != 0 && name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			wrong = append(wrong, fmt.Sprintf("%q for the resource %q, which is not whole", words(text), words(string(name))))
			return
		}
		all[name] = quantity
	}
	set(corev1.ResourceCPU, said.CPU)
	set(corev1.ResourceMemory, said.Memory)
	set(corev1.ResourcePods, said.Pods)
	sums := map[string]resource.Quantity{}
	for _, a := range said.Accelerators {
		if !strings.Contains(a.ResourceType, "/") || len(validation.IsQualifiedName(a.ResourceType)) > 0 {
			wrong = append(wrong, fmt.Sprintf("the resource %q, whose name is not one with a domain, such as nvidia.com/gpu", words(a.ResourceType)))
			continue
		}
		quantity, err := resource.ParseQuantity(string(a.Available))
		if err != nil {
			set(corev1.ResourceName(a.ResourceType), string(a.Available))
			continue
		}
		quantity.Add(sums[a.ResourceType])
		sums[a.ResourceType] = quantity
	}
	for name, quantity := range sums {
		set(corev1.ResourceName(name), quantity.String())
	}
	return all, wrong
}

// taintsOf returns the valid taints of a plugin's report. Invalid taints are left out and returned in wrong.
func taintsOf(said []wire.Taint) (taints []corev1.Taint, wrong []string) {
	for _, t := range said {
		if len(validation.IsQualifiedName(t.Key)) > 0 || len(validation.IsValidLabelValue(t.Value)) > 0 {
			wrong = append(wrong, fmt.Sprintf("the taint %q with the value %q, which no node may have", words(t.Key), words(t.Value)))
			continue
		}
		switch effect := corev1.TaintEffect(t.Effect); effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
			taints = append(taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: effect})
		default:
			wrong = append(wrong, fmt.Sprintf("the taint %q with the effect %q, which there is not", words(t.Key), words(t.Effect)))
		}
	}
	if n := len(taints) - len(distinct(taints)); n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d taints with the key and the effect of another one, which are left out", n))
	}
	return distinct(taints), wrong
}

// distinct returns the first taint of each key and effect. Kubernetes refuses a node with duplicates.
func distinct(taints []corev1.Taint) (out []corev1.Taint) {
	for _, t := range taints {
		if !slices.ContainsFunc(out, func(o corev1.Taint) bool { return o.MatchTaint(&t) }) {
			out = append(out, t)
		}
	}
	return out
}
