// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	kwait "k8s.io/apimachinery/pkg/util/wait"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// sweeps removes definitions and secrets that no pod needs, until ctx ends.
func (d *driver) sweeps(ctx context.Context) {
	if d.kit.Cache().Wait(ctx) != nil {
		return
	}
	wait, quiet := d.sweeper.every, false
	_ = kwait.DelayFunc(func() time.Duration { return wait }).Until(ctx, true, true, func(ctx context.Context) (bool, error) { // until ctx ends
		err := d.sweep(ctx)
		if err != nil && !quiet && ctx.Err() == nil {
			log.G(ctx).WithError(err).Warn("the leftovers of pods at AWS are not looked for")
		}
		if quiet, wait = err != nil, d.sweeper.every; quiet {
			wait = min(wait, sweepAgain)
		}
		return false, nil
	})
}

// sweep gives up the definitions and secrets of this node that no pod needs, so that they are removed. It lists them at the services,
// so it also finds things from before a restart.
func (d *driver) sweep(ctx context.Context) error {
	now, owner := d.sweeper.now(), d.mapping.owner
	prefixes := []string{sharedPrefix(owner), ownPrefix(owner)}
	secrets, err := d.client.listSecrets(ctx, prefixes)
	if err != nil {
		return err
	}
	var families []string
	for _, prefix := range prefixes {
		halfway, err := d.client.families(ctx, prefix, ecstypes.TaskDefinitionFamilyStatusInactive)
		if err != nil {
			return err
		}
		for _, family := range halfway { // deregistered definitions that were not deleted
			d.kit.Leave(definitionThing + family)
		}
		some, err := d.client.families(ctx, prefix, ecstypes.TaskDefinitionFamilyStatusActive)
		if err != nil {
			return err
		}
		families = append(families, some...)
	}
	pods, used := d.inUse()
	there := map[string]bool{}
	for _, family := range families {
		there[definitionThing+family] = true
		if used[family] {
			d.things.useDefinition(now, family)
		} else if err := d.sweepDefinition(ctx, now, family, pods); err != nil {
			return err
		}
	}
	idle := secrets[:0]
	for _, s := range secrets {
		there[s.name] = true
		if !d.needs(now, s, pods) {
			idle = append(idle, s)
		}
	}
	if len(idle) > 0 {
		if err := d.knowSecrets(ctx, now, used); err != nil {
			return err
		}
	}
	for _, s := range idle {
		if !d.needs(now, s, pods) {
			d.kit.Leave(s.name)
		}
	}
	d.things.only(there, now.Add(-sharedFor))
	return nil
}

// inUse returns the own names of unfinished pods, and the families of the definitions of tasks.
func (d *driver) inUse() (pods, families map[string]bool) {
	pods, families = map[string]bool{}, map[string]bool{}
	for _, k := range d.kit.Cache().Known() {
		if !ended(k.Instance) {
			pods[ownName(d.mapping.owner, k.Pod.UID)], families[familyOf(k.Instance)] = true, true
		}
	}
	for _, pod := range d.podsOfCluster() {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			pods[ownName(d.mapping.owner, pod.UID)] = true
		}
	}
	return pods, families
}

// sweepDefinition removes the definition of a family without tasks, if its time is over.
func (d *driver) sweepDefinition(ctx context.Context, now time.Time, family string, pods map[string]bool) error {
	thing := definitionThing + family
	used, own := d.things.get(thing).used, d.ownOf(family)
	if pods[own] {
		return nil
	}
	if used.IsZero() { // an earlier process has used the definition, so only the time of its registration is known
		definition, err := d.client.describeDefinition(ctx, family)
		if errdefs.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		used = aws.ToTime(definition.RegisteredAt)
		d.things.use(used, thing)
		d.things.know(family, definition.ContainerDefinitions)
	}
	if !d.stays(now, thing, used) {
		d.kit.Leave(thing)
	}
	return nil
}

// needs reports whether a secret is needed, or was needed a short time ago.
func (d *driver) needs(now time.Time, s listedSecret, pods map[string]bool) bool {
	used := d.things.get(s.name).used
	if used.IsZero() {
		used = s.used
	}
	return pods[d.ownOf(s.name)] || d.stays(now, s.name, used)
}

// knowSecrets records the secrets of the definitions that tasks use.
func (d *driver) knowSecrets(ctx context.Context, now time.Time, used map[string]bool) error {
	for family := range used {
		if d.things.get(definitionThing+family).secrets != nil {
			continue
		}
		definition, err := d.client.describeDefinition(ctx, family)
		if err != nil && !errdefs.IsNotFound(err) {
			return err
		}
		if err == nil {
			d.things.know(family, definition.ContainerDefinitions)
			d.things.useDefinition(now, family)
		}
	}
	return nil
}
