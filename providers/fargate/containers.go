// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
)

// restartPeriod is the number of seconds that a container must run before ECS starts it again. It is the smallest value
// that ECS accepts.
const restartPeriod = 60

// streamPrefix begins the names of log streams: prefix/container/task.
const streamPrefix = "vk"

// builder makes the containers of a task definition.
type builder struct {
	*service.Inputs
	config Config
	arns   map[string]string // of secrets, by container
	wait   []types.ContainerDependency
	last   []types.ContainerDependency // dependencies of the container that ends the task; nil if there is none
	ports  map[string]bool             // ports declared by containers
}

// container returns the definition of a container. The caller asks for containers in the order in which they
// start: each waits for the init containers before it.
func (b *builder) container(c *corev1.Container, init bool, at *field.Path) (types.ContainerDefinition, error) {
	full := b.Containers[c.Name]
	k := types.ContainerDefinition{
		Name: &c.Name, Image: &c.Image, EntryPoint: full.Command, Command: full.Args, Essential: aws.Bool(!init && !endsTogether(&b.Pod.Spec)), DependsOn: b.wait,
		StopTimeout: aws.Int32(b.grace()),
	}
	if c.WorkingDir != "" {
		k.WorkingDirectory = &c.WorkingDir
	}
	if arn := cmp.Or(b.config.RegistryCredentials[registry(c.Image)], b.arns[loginOf(c.Name)]); arn != "" {
		k.RepositoryCredentials = &types.RepositoryCredentials{CredentialsParameter: &arn}
	}
	b.declare(&k, c.Ports)
	for _, m := range c.VolumeMounts {
		k.MountPoints = append(k.MountPoints, types.MountPoint{
			SourceVolume: aws.String(m.Name), ContainerPath: aws.String(m.MountPath), ReadOnly: aws.Bool(m.ReadOnly || b.fixed(m.Name)),
		})
	}
	b.logs(&k)
	if err := b.environment(&k, c, full, at); err != nil {
		return k, err
	}
	if err := b.security(&k, c, at.Child("securityContext")); err != nil {
		return k, err
	}
	if err := b.config.checkProbes(c, init, at); err != nil {
		return k, err
	}
	if err := healthCheck(&k, c, at); err != nil {
		return k, err
	}
	switch {
	case !init:
		k.RestartPolicy = restarts(b.Pod.Spec.RestartPolicy)
		share(&k, c)
		b.last = append(b.last, types.ContainerDependency{ContainerName: &c.Name, Condition: types.ContainerConditionComplete})
	case podspec.IsSidecar(c):
		k.RestartPolicy = restarts(corev1.RestartPolicyAlways)
		share(&k, c)
		b.after(c, types.ContainerConditionStart)
	default: // without a share: ECS adds up all shares, as if all containers ran together
		b.after(c, types.ContainerConditionSuccess)
	}
	return k, nil
}

// declare declares the ports of a container that no earlier container has declared. ECS accepts each port once in
// a task, and a port has no further settings.
func (b *builder) declare(k *types.ContainerDefinition, ports []corev1.ContainerPort) {
	for _, p := range ports {
		protocol := strings.ToLower(cmp.Or(string(p.Protocol), "TCP"))
		name := strconv.Itoa(int(p.ContainerPort)) + "/" + protocol
		if !b.ports[name] {
			b.ports[name] = true
			k.PortMappings = append(k.PortMappings, types.PortMapping{ContainerPort: aws.Int32(p.ContainerPort), Protocol: types.TransportProtocol(protocol)})
		}
	}
}

// logs sends the output of a container to CloudWatch Logs.
func (b *builder) logs(k *types.ContainerDefinition) {
	if b.config.LogGroup == "" {
		return
	}
	k.LogConfiguration = &types.LogConfiguration{LogDriver: types.LogDriverAwslogs, Options: map[string]string{
		"awslogs-group": b.config.LogGroup, "awslogs-region": b.config.Region, "awslogs-stream-prefix": streamPrefix,
	}}
}

// fixed reports whether containers cannot change a volume: the volume has files of the API, or is read-only.
func (b *builder) fixed(volume string) bool {
	return slices.ContainsFunc(b.Pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == volume && (podspec.Written(&v) || v.NFS != nil && v.NFS.ReadOnly || v.CSI != nil && aws.ToBool(v.CSI.ReadOnly) || b.ReadOnly(&v))
	})
}

// after makes the next containers wait for a container.
func (b *builder) after(c *corev1.Container, until types.ContainerCondition) {
	b.wait = append(b.wait[:len(b.wait):len(b.wait)], types.ContainerDependency{ContainerName: &c.Name, Condition: until})
}

// grace returns how many seconds a container has to stop. ECS accepts at least minGrace.
func (b *builder) grace() int32 {
	if s := b.Pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return int32(max(minGrace, *s))
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

// environment gives a container its variables: as values, or by the keys of its secret.
func (b *builder) environment(k *types.ContainerDefinition, c, full *corev1.Container, at *field.Path) error {
	last := map[string]int{} // the last variable of a name counts
	for i, e := range full.Env {
		last[e.Name] = i
	}
	arn, secrets := b.arns[c.Name], podspec.SecretVariables(c, full)
	if arn == "" && hasSecrets(c) {
		return errdefs.InvalidInputf("%s: its secrets are not in Secrets Manager", at.Child("env"))
	}
	for i, e := range full.Env {
		switch {
		case last[e.Name] != i:
		case e.ValueFrom != nil: // an address
			return errdefs.InvalidInputf("%s: %s: the address of a task is known only when it runs", at.Child("env"), e.Name)
		case !utf8.ValidString(e.Value):
			return errdefs.InvalidInputf("%s: the value of %s is no UTF-8: Fargate gives variables as text", at.Child("env"), e.Name)
		case arn == "" || !secrets[e.Name]:
			k.Environment = append(k.Environment, types.KeyValuePair{Name: aws.String(e.Name), Value: aws.String(e.Value)})
		case strings.Contains(e.Name, ":"):
			return errdefs.InvalidInputf("%s: %q: a secret variable has no colon in its name on Fargate", at.Child("env"), e.Name)
		default:
			k.Secrets = append(k.Secrets, types.Secret{Name: aws.String(e.Name), ValueFrom: aws.String(arn + ":" + e.Name + "::")})
		}
	}
	return nil
}

// security gives a container its user and rights.
func (b *builder) security(k *types.ContainerDefinition, c *corev1.Container, at *field.Path) error {
	s, as := c.SecurityContext, podspec.RunAsOf(b.Pod, c)
	if s == nil {
		s = &corev1.SecurityContext{}
	}
	switch {
	case as.MayBeRoot():
		return errdefs.InvalidInputf("%s: Fargate does not look who an image runs as: say another runAsUser than 0", at.Child("runAsNonRoot"))
	case as.Group != nil && as.User == nil:
		return errdefs.InvalidInputf("%s: Fargate has no group without runAsUser", at.Child("runAsGroup"))
	case as.User != nil:
		k.User = aws.String(strconv.FormatInt(*as.User, 10))
		if as.Group != nil {
			*k.User += ":" + strconv.FormatInt(*as.Group, 10)
		}
	}
	k.ReadonlyRootFilesystem = s.ReadOnlyRootFilesystem
	if s.Capabilities == nil {
		return nil
	}
	caps := &types.KernelCapabilities{}
	for i, name := range s.Capabilities.Add {
		if name != "SYS_PTRACE" {
			return errdefs.InvalidInputf("%s: %s: Fargate adds SYS_PTRACE and no other", at.Child("capabilities", "add").Index(i), name)
		}
		caps.Add = append(caps.Add, string(name))
	}
	for _, name := range s.Capabilities.Drop {
		caps.Drop = append(caps.Drop, string(name))
	}
	if len(caps.Add)+len(caps.Drop) > 0 {
		k.LinuxParameters = &types.LinuxParameters{Capabilities: caps}
	}
	return nil
}

// checkProbes refuses startup and liveness probes that this process cannot run.
func (c Config) checkProbes(k *corev1.Container, init bool, at *field.Path) error {
	if init && k.StartupProbe != nil {
		return errdefs.InvalidInputf("%s: this node does it, and the containers that start next would not wait for it", at.Child("startupProbe"))
	}
	own := *k
	own.ReadinessProbe = nil // a health check, or a probe of the network
	return podspec.Probes(&own, at, func(p *corev1.Probe, at *field.Path) error {
		switch {
		case p.TerminationGracePeriodSeconds != nil:
			return errdefs.InvalidInputf("%s: ECS gives a container the time that its pod was made with", at.Child("terminationGracePeriodSeconds"))
		case p.Exec == nil:
		case c.ExecRole == "":
			return errdefs.InvalidInputf("%s: this node does it by ECS Exec: name a role with the rights for it in execRole of this node's configuration", at.Child("exec"))
		case k.SecurityContext != nil && aws.ToBool(k.SecurityContext.ReadOnlyRootFilesystem):
			return errdefs.InvalidInputf("%s: this node does it by ECS Exec, which a container with a read-only root does not have", at.Child("exec"))
		}
		return nil
	})
}

// healthCheck makes a health check from a readiness probe. This process runs the other probes, because ECS does
// nothing to an unhealthy container of a single task.
func healthCheck(k *types.ContainerDefinition, c *corev1.Container, at *field.Path) error {
	p := c.ReadinessProbe
	if p == nil || p.Exec == nil {
		return nil
	}
	h := &types.HealthCheck{Command: append([]string{"CMD"}, p.Exec.Command...)}
	for _, n := range []struct {
		name               string
		value, least, most int32
		to                 **int32
	}{
		{"initialDelaySeconds", p.InitialDelaySeconds, 0, 300, &h.StartPeriod},
		{"periodSeconds", cmp.Or(p.PeriodSeconds, 10), 5, 300, &h.Interval},
		{"timeoutSeconds", cmp.Or(p.TimeoutSeconds, 1), 2, 60, &h.Timeout},
		{"failureThreshold", cmp.Or(p.FailureThreshold, 3), 1, 10, &h.Retries},
	} {
		if n.value > n.most {
			return errdefs.InvalidInputf("%s: %d: ECS takes %d at most", at.Child("readinessProbe", n.name), n.value, n.most)
		}
		*n.to = aws.Int32(max(n.value, n.least))
	}
	k.HealthCheck = h
	return nil
}

// restarts returns the restart policy of ECS. ECS does not start a container again that ran for less than
// restartPeriod.
func restarts(policy corev1.RestartPolicy) *types.ContainerRestartPolicy {
	switch policy {
	case corev1.RestartPolicyNever:
		return nil
	case corev1.RestartPolicyOnFailure:
		return &types.ContainerRestartPolicy{Enabled: aws.Bool(true), IgnoredExitCodes: []int32{0}, RestartAttemptPeriod: aws.Int32(restartPeriod)}
	}
	return &types.ContainerRestartPolicy{Enabled: aws.Bool(true), RestartAttemptPeriod: aws.Int32(restartPeriod)}
}

// share gives a container its part of the task: its CPU request as a share, its memory limit as a limit.
func share(k *types.ContainerDefinition, c *corev1.Container) {
	asked, limit := sizing.Of(ask(c)), sizing.Of(c.Resources.Limits)
	mib := func(bytes int64) *int32 { return aws.Int32(int32((max(bytes, minMemory) + sizing.Mi - 1) / sizing.Mi)) }
	k.Cpu = int32(asked.MilliCPU * 1024 / 1000)
	if limit.Memory > 0 {
		k.Memory = mib(limit.Memory)
	}
	if asked.Memory > 0 && (limit.Memory == 0 || *mib(asked.Memory) < *k.Memory) { // ECS refuses both to be the same
		k.MemoryReservation = mib(asked.Memory)
	}
}

// waiter returns the container that ends the task when all other containers have ended. A task stops with its
// first essential container, so waiter is the only essential one.
func (b *builder) waiter() types.ContainerDefinition {
	k := types.ContainerDefinition{
		Name: aws.String(waiterName), Image: &b.config.FilesImage, Essential: aws.Bool(true), EntryPoint: []string{"sh", "-c"}, Command: []string{"true"}, DependsOn: b.last,
	}
	b.helper(&k)
	return k
}

// helper gives a container of filesImage its log and its pull credentials.
func (b *builder) helper(k *types.ContainerDefinition) {
	b.logs(k)
	if arn := b.config.RegistryCredentials[registry(b.config.FilesImage)]; arn != "" {
		k.RepositoryCredentials = &types.RepositoryCredentials{CredentialsParameter: &arn}
	}
}

// writer returns the container that writes the files of a pod, or false if there is none. Its image has sh,
// base64 and tar.
func (b *builder) writer() (types.ContainerDefinition, bool) {
	k := types.ContainerDefinition{Name: aws.String(filesName), Image: &b.config.FilesImage, Essential: aws.Bool(false), EntryPoint: []string{"sh", "-c"}}
	var script []string
	for _, kind := range []string{sharedFiles, ownFiles} {
		variable := "VK_" + strings.ToUpper(strings.TrimSuffix(kind, "/")) + "_"
		var read []string
		for i := 0; b.arns[kind+strconv.Itoa(i)] != ""; i++ {
			name := variable + strconv.Itoa(i)
			k.Secrets = append(k.Secrets, types.Secret{Name: &name, ValueFrom: aws.String(b.arns[kind+strconv.Itoa(i)])})
			read = append(read, `printf %s "$`+name+`"`)
		}
		if len(read) > 0 {
			script = append(script, "{ "+strings.Join(read, "; ")+"; } | base64 -d | tar xzpf - -C "+filesDir)
		}
	}
	if len(script) == 0 {
		return k, false
	}
	k.Command = []string{strings.Join(script, " && ")}
	for i := range b.Pod.Spec.Volumes {
		if v := &b.Pod.Spec.Volumes[i]; podspec.Written(v) {
			k.MountPoints = append(k.MountPoints, types.MountPoint{SourceVolume: aws.String(v.Name), ContainerPath: aws.String(filesDir + "/" + v.Name), ReadOnly: aws.Bool(false)})
		}
	}
	b.helper(&k)
	b.wait = append(b.wait, types.ContainerDependency{ContainerName: k.Name, Condition: types.ContainerConditionSuccess})
	return k, true
}
