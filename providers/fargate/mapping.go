// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
)

// Annotations of pods.
const (
	// AnnotationRole is the ARN of the role of a task. The configuration must allow the role.
	AnnotationRole = "fargate.virtual-kubelet.io/role"
	// AnnotationOldRole is AnnotationRole under the name of aws-fargate and other tools. The value may be the
	// name of the role alone.
	AnnotationOldRole = "iam.amazonaws.com/role"
	// AnnotationCapacityProvider is OnDemand or Spot.
	AnnotationCapacityProvider = "fargate.virtual-kubelet.io/capacity-provider"
)

// tagOwn marks tasks with a secret of their own. The secret is deleted with the task.
const tagOwn = "vk-own-secret"

// maxDefinition is the maximum size of a task definition, in bytes.
const maxDefinition = 64 << 10

// mapping makes task definitions and tasks of pods. Its methods are pure functions.
type mapping struct {
	config Config
	owner  identity.Owner
}

// check refuses a pod for every reason of prepare that is visible in the pod alone.
func (m mapping) check(pod *corev1.Pod) error {
	if err := refuse(pod); err != nil {
		return err
	}
	in, err := service.Unread(m.owner, pod)
	if err != nil {
		return err
	}
	if _, err := m.task(pod, ""); err != nil {
		return err
	}
	secrets, err := vault{config: m.config, owner: m.owner}.secrets(in)
	if err != nil {
		return err
	}
	arns := map[string]string{}
	for as, s := range secrets {
		arns[as] = s.name
	}
	_, err = m.definition(in, arns)
	return err
}

// startedBy is the startedBy of all tasks of the node.
func (m mapping) startedBy() string { return "vk-" + identity.Hash(m.owner.Cluster, m.owner.Node) }

// definition returns the task definition of a pod, with the ARNs of the secrets of its containers. The family is
// derived from the content, so an existing family has the same content. Errors are of the kind invalid-input.
func (m mapping) definition(in *service.Inputs, arns map[string]string) (*ecs.RegisterTaskDefinitionInput, error) {
	spec := &in.Pod.Spec
	size, storage, err := buy(in.Pod)
	if err != nil {
		return nil, err
	}
	role, err := m.role(in.Pod)
	if err != nil {
		return nil, err
	}
	d := &ecs.RegisterTaskDefinitionInput{
		Cpu: aws.String(strconv.FormatInt(size.MilliCPU*1024/1000, 10)), Memory: aws.String(strconv.FormatInt(size.Memory/sizing.Mi, 10)),
		NetworkMode: types.NetworkModeAwsvpc, RequiresCompatibilities: []types.Compatibility{types.CompatibilityFargate},
		RuntimePlatform:  &types.RuntimePlatform{CpuArchitecture: types.CPUArchitecture(m.config.Architecture), OperatingSystemFamily: types.OSFamilyLinux},
		ExecutionRoleArn: &m.config.ExecutionRole, TaskRoleArn: role,
		Tags: []types.Tag{{Key: aws.String(identity.TagCluster), Value: &m.owner.Cluster}, {Key: aws.String(identity.TagNode), Value: &m.owner.Node}},
	}
	if storage > 0 {
		d.EphemeralStorage = &types.EphemeralStorage{SizeInGiB: storage}
	}
	b := builder{config: m.config, Inputs: in, arns: arns, ports: map[string]bool{}}
	for i := range spec.Volumes {
		v, err := volumeOf(in, m.config, &spec.Volumes[i], field.NewPath("spec", "volumes").Index(i))
		if err != nil {
			return nil, err
		}
		d.Volumes = append(d.Volumes, v)
	}
	if k, ok := b.writer(); ok {
		d.ContainerDefinitions = append(d.ContainerDefinitions, k)
	}
	err = service.Containers(in.Pod, func(c *corev1.Container, init bool, at *field.Path) error {
		k, err := b.container(c, init, at)
		d.ContainerDefinitions = append(d.ContainerDefinitions, k)
		return err
	})
	if err != nil {
		return nil, err
	}
	if endsTogether(spec) {
		d.ContainerDefinitions = append(d.ContainerDefinitions, b.waiter())
	}
	said, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("write the task definition: %w", err)
	}
	if len(said) > maxDefinition {
		return nil, errdefs.InvalidInputf("spec.containers: the task definition has %d bytes, and ECS takes %d: read long texts, variables and commands from files", len(said), maxDefinition)
	}
	prefix := sharedPrefix(m.owner)
	if alone(in.Pod) {
		prefix = ownName(m.owner, in.Pod.UID) + "-"
	}
	d.Family = aws.String(prefix + identity.Hash(string(said)))
	return d, nil
}

// task returns the request for the task of a pod. A repeated request gives the same task, because it has the
// same token.
func (m mapping) task(pod *corev1.Pod, definition string) (*ecs.RunTaskInput, error) {
	provider := cmp.Or(pod.Annotations[AnnotationCapacityProvider], m.config.CapacityProvider, OnDemand)
	if !capacityProvider(provider) {
		return nil, errdefs.InvalidInputf("%s: %q: want %s or %s", annotation(AnnotationCapacityProvider), provider, OnDemand, Spot)
	}
	public := types.AssignPublicIpDisabled
	if m.config.PublicIP {
		public = types.AssignPublicIpEnabled
	}
	in := &ecs.RunTaskInput{
		Cluster: &m.config.Cluster, TaskDefinition: &definition, Count: aws.Int32(1), EnableExecuteCommand: m.config.ExecRole != "", PlatformVersion: &m.config.PlatformVersion,
		ClientToken: aws.String(m.owner.Name(identity.Of(pod))), StartedBy: aws.String(m.startedBy()),
		NetworkConfiguration: &types.NetworkConfiguration{AwsvpcConfiguration: &types.AwsVpcConfiguration{
			Subnets: m.config.Subnets, SecurityGroups: m.config.SecurityGroups, AssignPublicIp: public,
		}},
	}
	if provider == OnDemand && m.config.CapacityProvider != OnDemand {
		in.LaunchType = types.LaunchTypeFargate // ECS refuses a strategy in a cluster without capacity providers
	} else {
		in.CapacityProviderStrategy = []types.CapacityProviderStrategyItem{{CapacityProvider: &provider, Weight: 1}}
	}
	var err error
	if in.VolumeConfigurations, err = launch(m.config, pod); err != nil {
		return nil, err
	}
	in.Tags, in.Group = m.tags(identity.Of(pod), hasOwn(pod)), aws.String(group(pod.UID, hasOwn(pod)))
	return in, nil
}

// tags returns the tags of the task of a pod.
func (m mapping) tags(pod identity.Pod, own bool) (out []types.Tag) {
	tags := m.owner.Tags(pod)
	if own {
		tags[tagOwn] = "true"
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return out
}

// Prefixes of the names of task groups. The rest of a name is the UID of the pod. A task keeps its group, while
// StopTask deletes its tags.
const (
	groupPlain = "vk-pod-"
	groupOwn   = "vk-own-secret-" // of tasks with a secret of their own, which is deleted with them
)

// group returns the name of the task group of a pod.
func group(uid apitypes.UID, own bool) string {
	if own {
		return groupOwn + string(uid)
	}
	return groupPlain + string(uid)
}

// podOf returns the UID of the pod of a task of this node by the group of the task, and whether a secret ends with the task. The UID
// is empty for a task without such a group.
func (m mapping) podOf(t types.Task) (uid apitypes.UID, own bool) {
	if aws.ToString(t.StartedBy) != m.startedBy() {
		return "", false
	}
	if uid, own := strings.CutPrefix(aws.ToString(t.Group), groupOwn); own {
		return apitypes.UID(uid), true
	}
	plain, _ := strings.CutPrefix(aws.ToString(t.Group), groupPlain)
	if plain == aws.ToString(t.Group) {
		return "", false
	}
	return apitypes.UID(plain), false
}

// role returns the role of the pod's annotation, if the configuration allows it. The right to write pods alone
// gives no rights at AWS.
func (m mapping) role(pod *corev1.Pod) (*string, error) {
	asked, name := pod.Annotations[AnnotationRole], AnnotationRole
	if old := pod.Annotations[AnnotationOldRole]; old != "" {
		if asked != "" && asked != m.fullRole(old) {
			return nil, errdefs.InvalidInputf("%s: %q is another role than that of %s: remove one", annotation(AnnotationOldRole), old, AnnotationRole)
		}
		asked, name = m.fullRole(old), AnnotationOldRole
	}
	switch {
	case asked == "" && m.config.ExecRole == "":
		return nil, nil
	case asked == "":
		return &m.config.ExecRole, nil
	case !slices.Contains(m.config.TaskRoles, asked):
		return nil, errdefs.InvalidInputf("%s: %q is none of taskRoles of this node's configuration", annotation(name), asked)
	}
	return &asked, nil
}

// fullRole returns the ARN of a role. The role may be given by its name alone, if the configuration allows a
// role of that name.
func (m mapping) fullRole(named string) string {
	for _, arn := range m.config.TaskRoles {
		if strings.HasSuffix(arn, ":role/"+strings.TrimPrefix(named, "/")) {
			return arn
		}
	}
	return named
}

func annotation(key string) *field.Path { return field.NewPath("metadata", "annotations").Key(key) }
