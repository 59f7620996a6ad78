// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// group is the name of the only group of a job.
const group = "pod"

// request has the objects that Nomad gets for a pod.
type request struct {
	job       *nomadapi.Job
	variables []*nomadapi.Variable
}

// taskBuilder makes the tasks of a pod.
type taskBuilder struct {
	config Config
	*service.Inputs
	mhz    float64 // of a CPU
	driver string
	jobID  string
}

// task is a task under construction.
type task struct {
	*nomadapi.Task
	spec   *corev1.Container // the container of the pod
	items  map[string]string // of its Variable
	path   string            // of its Variable
	mounts []string          // shell lines that mount the volumes
}

// hasSecretEnv reports whether a variable of the container may come from a Secret.
func hasSecretEnv(c *corev1.Container) bool { return podspec.SecretSource(c, nil) != nil }

// program sets the command of the task. If the task must first link its volumes, or wait for an earlier init container, a shell does
// so: /bin/sh of the image, or of the client's chroot.
func (b taskBuilder) program(t *task, i int, init bool, at *field.Path) error {
	c := b.Containers[t.Name]
	command, args := c.Command, c.Args
	if hasSecretEnv(t.spec) { // the command in the job must not contain the value of a Secret
		command, args = t.spec.Command, t.spec.Args
	}
	write := func(list []string) ([]string, error) {
		out := make([]string, 0, len(list))
		for _, text := range list {
			if !hasSecretEnv(t.spec) {
				out = append(out, literal(text))
				continue
			}
			expanded, err := expand(text, t.spec.Env, c.Env)
			if err != nil {
				return nil, errdefs.InvalidInputf("%s: %w", at.Child("command"), err)
			}
			out = append(out, expanded)
		}
		return out, nil
	}
	entry, err := write(command)
	if err != nil {
		return err
	}
	rest, err := write(args)
	if err != nil {
		return err
	}
	script := b.script(t, i, init)
	if b.driver != DriverDocker {
		entry, rest = append(entry, rest...), nil
		if len(entry) == 0 {
			return errdefs.InvalidInputf("%s: the driver %s has no images, so a container needs a command", at.Child("command"), b.driver)
		}
	} else if t.Config["image"] = literal(c.Image); script != "" && len(entry) == 0 {
		return errdefs.InvalidInputf("%s: an init container that is not the first one needs a command, as it has to wait for the one before", at.Child("command"))
	}
	if script != "" {
		entry = append([]string{"/bin/sh", "-c", literal(script)}, entry...)
	}
	if b.driver != DriverDocker {
		t.Config["command"] = entry[0]
		t.Config["args"] = entry[1:]
	} else {
		if len(entry) > 0 {
			t.Config["entrypoint"] = entry
		}
		if len(rest) > 0 {
			t.Config["args"] = rest
		}
	}
	if c.WorkingDir != "" {
		t.Config["work_dir"] = literal(c.WorkingDir)
	}
	return b.dockerOnly(t, c)
}

// dockerOnly sets the options that only the driver docker has.
func (b taskBuilder) dockerOnly(t *task, c *corev1.Container) error {
	if b.driver != DriverDocker {
		return nil
	}
	if c.ImagePullPolicy == corev1.PullAlways {
		t.Config["force_pull"] = true
	}
	if s := c.SecurityContext; s != nil && s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem {
		t.Config["readonly_rootfs"] = true
	}
	switch as := podspec.RunAsOf(b.Pod, c); {
	case as.User != nil && as.Group != nil:
		t.User = fmt.Sprintf("%d:%d", *as.User, *as.Group)
	case as.User != nil:
		t.User = fmt.Sprint(*as.User)
	}
	return nil
}

// ready returns the file with which an init container lets the next one begin.
func ready(i int) string { return fmt.Sprintf(`"$NOMAD_ALLOC_DIR"/.vk-init-%d`, i) }

// script returns the script before the command, or "". Nomad starts all init containers at once, so each waits
// for the one before it.
func (b taskBuilder) script(t *task, i int, init bool) string {
	lines := slices.Clone(t.mounts)
	several := init && len(b.Pod.Spec.InitContainers) > 1
	if several && i > 0 {
		lines = append(lines, "until [ -e "+ready(i-1)+" ]; do sleep 0.1; done")
	}
	switch {
	case several && podspec.IsSidecar(t.spec):
		lines = append(lines, ": > "+ready(i))
	case several && i < len(b.Pod.Spec.InitContainers)-1:
		return strings.Join(append(lines, `"$0" "$@" & p=$!; trap 'kill -TERM $p' TERM; wait $p; c=$?`,
			`while kill -0 $p 2>/dev/null; do wait $p; c=$?; done`,
			`[ $c != 0 ] || : > `+ready(i), `exit $c`), "\n")
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(append(lines, `exec "$0" "$@"`), "\n")
}

// reference matches the references that Kubernetes replaces in commands: $(NAME), and $$ is a dollar.
var reference = regexp.MustCompile(`\$\$|\$\([-._a-zA-Z][-._a-zA-Z0-9]*\)`)

// expand writes an argument of a container with variables from Secrets. It refuses a reference to a variable
// that may contain a part of a Secret: the client writes command lines to files that all users of its machine
// can read.
func expand(text string, spec, values []corev1.EnvVar) (string, error) {
	var out strings.Builder
	last := 0
	for _, at := range reference.FindAllStringIndex(text, -1) {
		out.WriteString(literal(text[last:at[0]]))
		found := text[at[0]:at[1]]
		last = at[1]
		if found == "$$" {
			out.WriteString(literal("$"))
			continue
		}
		name := found[2 : len(found)-1]
		of := func(e corev1.EnvVar) bool { return e.Name == name }
		value := slices.IndexFunc(values, of)
		switch {
		case value < 0:
			out.WriteString(literal(found))
		case !slices.ContainsFunc(spec, of) || slices.ContainsFunc(spec, func(e corev1.EnvVar) bool { return of(e) && maySecret(e) }):
			return "", fmt.Errorf("%s may have the value of a Secret, which the command line would show to all users of the client: let the program read the variable", found)
		default:
			out.WriteString(literal(values[value].Value))
		}
	}
	return out.String() + literal(text[last:]), nil
}

// maySecret reports whether a variable comes from a Secret, or may contain a part of one.
func maySecret(e corev1.EnvVar) bool {
	if e.ValueFrom != nil {
		return e.ValueFrom.SecretKeyRef != nil
	}
	return strings.Contains(e.Value, "$(")
}

// checkMode refuses features that the pod's driver lacks, although the node declares them for another driver.
func checkMode(driver string, pod *corev1.Pod, c *corev1.Container, at *field.Path) error {
	as, s := podspec.RunAsOf(pod, c), c.SecurityContext
	switch {
	case as.MayBeRoot():
		return errdefs.InvalidInputf("%s: Nomad does not look who an image runs as: say another runAsUser than 0", at.Child("securityContext", "runAsNonRoot"))
	case driver != DriverDocker && (as.User != nil || as.Group != nil || s != nil && s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem):
		return errdefs.InvalidInputf("%s: the driver %s has no such settings", at.Child("securityContext"), driver)
	}
	return nil
}

// checkProbes refuses the probes of a container that this process cannot run.
func (b taskBuilder) checkProbes(c *corev1.Container, init bool, at *field.Path) error {
	if init && c.StartupProbe != nil {
		return errdefs.InvalidInputf("%s: this node does it, and the containers that start next would not wait for it", at.Child("startupProbe"))
	}
	return podspec.Probes(c, at, func(p *corev1.Probe, at *field.Path) error {
		switch {
		case p.TerminationGracePeriodSeconds != nil:
			return errdefs.InvalidInputf("%s: Nomad gives a task the time that its pod was made with", at.Child("terminationGracePeriodSeconds"))
		case p.Exec == nil && b.config.Network != NetworkBridge && !b.Pod.Spec.HostNetwork:
			return errdefs.InvalidInputf("%s: the pod has no address to ask, as the pods of this node are in the network of the clients: use exec, or hostNetwork", at)
		}
		return nil
	})
}
