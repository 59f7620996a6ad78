// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	smtypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// sweepEvery is how long after a sweep the next one comes, which looks for definitions and secrets that no pod needs, and sweepAgain after one that
	// has failed.
	sweepEvery, sweepAgain = time.Hour, 5 * time.Minute
	// sharedFor is how long what pods share stays when no pod needs it any more, and ownFor how long what is of one pod stays that this node does not
	// know: the pod may be about to be made.
	sharedFor, ownFor = 24 * time.Hour, time.Hour
)

// listedSecret is a secret as Secrets Manager lists it.
type listedSecret struct {
	name string
	used time.Time // when it was read last, to the day, or written
}

// sweeper looks for what is left at the services.
type sweeper struct {
	every time.Duration
	now   func() time.Time
	uses  uses
}

// sweeps removes what no pod needs, until ctx ends.
func (d *driver) sweeps(ctx context.Context) {
	if d.kit.Cache().Wait(ctx) != nil {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for quiet := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := d.sweep(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !quiet {
			log.G(ctx).WithError(err).Warn("What pods have left at AWS is not looked for")
		}
		quiet = err != nil
		wait := d.sweeper.every
		if err != nil {
			wait = min(wait, sweepAgain)
		}
		timer.Reset(wait)
	}
}

// sweep lets the definitions and secrets of this node be removed that no pod needs. The services are asked which there are, so that no restart loses one.
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
		for _, family := range halfway { // they were deregistered, and not deleted
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
			d.sweeper.uses.useDefinition(now, family)
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
	d.sweeper.uses.only(there, now.Add(-sharedFor))
	return nil
}

// inUse returns the names of what is of one pod alone, of pods that are not over, and the families of the definitions that tasks have.
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

// ownOf returns the name of what is of one pod alone; "" is a thing that pods share.
func (d *driver) ownOf(name string) string {
	prefix := ownPrefix(d.mapping.owner)
	if n := len(ownName(d.mapping.owner, "")); strings.HasPrefix(name, prefix) && len(name) >= n {
		return name[:n]
	}
	return ""
}

// stays reports whether a thing was used a short time ago.
func (d *driver) stays(now time.Time, thing string, used time.Time) bool {
	keep := sharedFor
	if d.ownOf(strings.TrimPrefix(thing, definitionThing)) != "" {
		keep = ownFor
	}
	return now.Sub(used) < keep
}

// sweepDefinition removes the definition of a family that no task has, if its time is over.
func (d *driver) sweepDefinition(ctx context.Context, now time.Time, family string, pods map[string]bool) error {
	thing := definitionThing + family
	used, own := d.sweeper.uses.since(thing), d.ownOf(family)
	if pods[own] {
		return nil
	}
	if used.IsZero() { // an earlier process has used it, and when it was registered is all that is known
		definition, err := d.client.describeDefinition(ctx, family)
		if errdefs.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		used = aws.ToTime(definition.RegisteredAt)
		d.sweeper.uses.use(used, thing)
		d.sweeper.uses.know(family, secretsOf(definition.ContainerDefinitions))
	}
	if !d.stays(now, thing, used) {
		d.kit.Leave(thing)
	}
	return nil
}

// needs reports whether a secret is needed, or was a short time ago.
func (d *driver) needs(now time.Time, s listedSecret, pods map[string]bool) bool {
	used := d.sweeper.uses.since(s.name)
	if used.IsZero() {
		used = s.used
	}
	return pods[d.ownOf(s.name)] || d.stays(now, s.name, used)
}

// knowSecrets takes down which secrets the definitions have that tasks use.
func (d *driver) knowSecrets(ctx context.Context, now time.Time, used map[string]bool) error {
	for family := range used {
		if _, known := d.sweeper.uses.secrets(family); known {
			continue
		}
		definition, err := d.client.describeDefinition(ctx, family)
		if err != nil && !errdefs.IsNotFound(err) {
			return err
		}
		if err == nil {
			d.sweeper.uses.know(family, secretsOf(definition.ContainerDefinitions))
			d.sweeper.uses.useDefinition(now, family)
		}
	}
	return nil
}

// leave lets a thing be removed that nothing uses any more.
func (d *driver) leave(thing string) {
	d.sweeper.uses.forget(thing)
	d.kit.Leave(thing)
}

// Remove implements service.Remover. It removes a definition or a secret, unless it was used meanwhile.
func (d *driver) Remove(ctx context.Context, name string) error {
	if d.stays(d.sweeper.now(), name, d.sweeper.uses.since(name)) {
		return nil
	}
	if family, ok := strings.CutPrefix(name, definitionThing); ok {
		d.made.lose(family)
		return d.client.removeDefinition(ctx, family)
	}
	d.made.lose(name)
	return d.client.drop(ctx, name)
}

func (c *client) families(ctx context.Context, prefix string, status ecstypes.TaskDefinitionFamilyStatus) (names []string, err error) {
	in := &ecs.ListTaskDefinitionFamiliesInput{FamilyPrefix: &prefix, Status: status}
	for {
		out, err := c.ecs.ListTaskDefinitionFamilies(ctx, in)
		if err != nil {
			return nil, kind(err, "list the task definitions of this node")
		}
		names = append(names, out.Families...)
		if aws.ToString(out.NextToken) == "" {
			return names, nil
		}
		in.NextToken = out.NextToken
	}
}

func (c *client) describeDefinition(ctx context.Context, family string) (*ecstypes.TaskDefinition, error) {
	out, err := c.ecs.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: &family})
	if err != nil {
		return nil, kind(err, "look for the task definition "+family)
	}
	if out.TaskDefinition == nil || out.TaskDefinition.Status != ecstypes.TaskDefinitionStatusActive {
		return nil, errdefs.NotFoundf("task definition %s is not active", family)
	}
	return out.TaskDefinition, nil
}

// removeDefinition deregisters and deletes the newest revision of a family, or deletes those that are deregistered.
func (c *client) removeDefinition(ctx context.Context, family string) error {
	var arns []string
	switch definition, err := c.describeDefinition(ctx, family); {
	case err == nil:
		arns = []string{aws.ToString(definition.TaskDefinitionArn)}
		if _, err := c.ecs.DeregisterTaskDefinition(ctx, &ecs.DeregisterTaskDefinitionInput{TaskDefinition: &arns[0]}); err != nil {
			return kind(err, "deregister the task definition "+arns[0])
		}
	case !errdefs.IsNotFound(err):
		return err
	default:
		out, err := c.ecs.ListTaskDefinitions(ctx, &ecs.ListTaskDefinitionsInput{FamilyPrefix: &family, Status: ecstypes.TaskDefinitionStatusInactive})
		if err != nil {
			return kind(err, "list the revisions of the task definition "+family)
		}
		arns = out.TaskDefinitionArns
	}
	for some := range slices.Chunk(arns, deletedAtOnce) {
		out, err := c.ecs.DeleteTaskDefinitions(ctx, &ecs.DeleteTaskDefinitionsInput{TaskDefinitions: some})
		if err != nil {
			return kind(err, "delete the task definition "+family)
		}
		for _, f := range out.Failures {
			return fmt.Errorf("delete the task definition %s: %s %s", aws.ToString(f.Arn), aws.ToString(f.Reason), aws.ToString(f.Detail))
		}
	}
	return nil
}

// deletedAtOnce is how many revisions of task definitions one request deletes at most.
const deletedAtOnce = 10

func (c *client) listSecrets(ctx context.Context, prefixes []string) (all []listedSecret, err error) {
	in := &secretsmanager.ListSecretsInput{Filters: []smtypes.Filter{{Key: smtypes.FilterNameStringTypeName, Values: prefixes}}}
	for {
		out, err := c.secrets.ListSecrets(ctx, in)
		if err != nil {
			return nil, kind(err, "list the secrets of this node")
		}
		for _, s := range out.SecretList {
			used := aws.ToTime(s.LastChangedDate)
			if s.LastAccessedDate != nil && s.LastAccessedDate.Add(accessedWithin).After(used) {
				used = s.LastAccessedDate.Add(accessedWithin)
			}
			all = append(all, listedSecret{aws.ToString(s.Name), used})
		}
		if aws.ToString(out.NextToken) == "" {
			return all, nil
		}
		in.NextToken = out.NextToken
	}
}

// accessedWithin is how exact Secrets Manager says when a secret was read: it tells the day.
const accessedWithin = 24 * time.Hour
