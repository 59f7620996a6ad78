// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
)

// maxVariable is the maximum size of a Variable of Nomad in bytes.
const maxVariable = 64 << 10

// add makes the task of a container and adds it to the group. i is the index of an init container.
func (b taskBuilder) add(out *request, g *nomadapi.TaskGroup, c *corev1.Container, i int, init bool, at *field.Path) error {
	t := task{spec: c, items: map[string]string{}, path: variablePath(b.jobID, c.Name), Task: &nomadapi.Task{
		Name: c.Name, Driver: b.driver, KillTimeout: ptr.To(killTimeout(b.Pod)), KillSignal: "SIGTERM", RestartPolicy: b.restart(c, init),
		LogConfig: &nomadapi.LogConfig{MaxFiles: ptr.To(2), MaxFileSizeMB: ptr.To(10)}, Config: map[string]any{},
	}}
	if init {
		t.Lifecycle = &nomadapi.TaskLifecycle{Hook: nomadapi.TaskLifecycleHookPrestart, Sidecar: podspec.IsSidecar(c)}
	}
	var err error
	if t.Resources, err = b.resources(c, at); err != nil {
		return err
	}
	if err := b.environment(&t, at); err != nil {
		return err
	}
	if err := b.volumes(&t, at); err != nil {
		return err
	}
	if err := b.program(&t, i, init, at); err != nil {
		return err
	}
	if err := b.checkProbes(c, init, at); err != nil {
		return err
	}
	if err := checkMode(b.driver, b.Pod, c, at); err != nil {
		return err
	}
	g.Tasks = append(g.Tasks, t.Task)
	if len(t.items) > 0 {
		size := 0
		for name, value := range t.items {
			size += len(name) + len(value)
		}
		if size > maxVariable {
			return errdefs.InvalidInputf("%s: the secrets of container %s take %d bytes, and a Variable of Nomad holds %d", at, c.Name, size, maxVariable)
		}
		out.variables = append(out.variables, &nomadapi.Variable{Namespace: b.config.Namespace, Path: t.path, Items: t.items})
	}
	return nil
}

// variablesOf is the prefix of the paths of Variables that the tasks of a job may read.
const variablesOf = "nomad/jobs/"

// variablePath returns the path of the Variable of a task. Only this task may read it.
func variablePath(jobID, container string) string {
	return variablesOf + jobID + "/" + group + "/" + container
}

// clientGrace is the default of max_kill_timeout: how long a client waits at most before it kills a task. Every task gets at least
// this time, so that a deletion can have a longer grace period than the spec. For a shorter grace period, the provider kills the task.
const clientGrace = 30 * time.Second

// killTimeout returns how long a client waits for the end of a stopped task before it kills the task.
func killTimeout(pod *corev1.Pod) time.Duration { return max(specGrace(pod), clientGrace) }

// specGrace returns the grace period of a pod that is not being deleted.
func specGrace(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// day is the period in which Nomad counts restarts. The number of restarts never exceeds the number that fits
// into it.
const day = 24 * time.Hour

// restart returns the restart policy of a task. The type of the job decides whether a task restarts after a
// success.
func (b taskBuilder) restart(c *corev1.Container, init bool) *nomadapi.RestartPolicy {
	p := &nomadapi.RestartPolicy{Attempts: ptr.To(0), Interval: ptr.To(day), Delay: &b.config.RestartDelay.Duration, Mode: ptr.To("fail"), RenderTemplates: ptr.To(false)}
	if b.Pod.Spec.RestartPolicy != corev1.RestartPolicyNever || init && podspec.IsSidecar(c) {
		p.Attempts, p.Mode = ptr.To(int(day/b.config.RestartDelay.Duration)), ptr.To("delay")
	}
	return p
}

// environment sets the variables of the task in the job. If one comes from a Secret, all of them are in the Variable of the task,
// because each may contain parts of the others.
func (b taskBuilder) environment(t *task, at *field.Path) error {
	c := b.Containers[t.Name]
	secret := hasSecretEnv(t.spec)
	var file strings.Builder
	for i, e := range c.Env {
		if e.ValueFrom != nil {
			return errdefs.InvalidInputf("%s: Nomad tells the address of a pod after its start only", at.Child("env").Index(i).Child("valueFrom"))
		}
		if secret {
			line, err := envLine(e.Name, e.Value)
			if err != nil {
				return errdefs.InvalidInputf("%s: %w", at.Child("env"), err)
			}
			file.WriteString(line)
			continue
		}
		if t.Env == nil {
			t.Env = map[string]string{}
		}
		if t.Env[e.Name] = variable(e.Value); t.Env[e.Name] != e.Value {
			t.Meta = map[string]string{dollar: "$"}
		}
	}
	if secret && file.Len() > 0 {
		t.items["env"] = base64.StdEncoding.EncodeToString([]byte(file.String()))
		t.Templates = append(t.Templates, b.template("secrets/vk.env", itemTemplate(t.path, "env"), 0o600, nil, true))
	}
	return nil
}

func (b taskBuilder) template(destination, text string, mode uint32, user *int64, env bool) *nomadapi.Template {
	t := &nomadapi.Template{
		DestPath: &destination, EmbeddedTmpl: &text, ChangeMode: ptr.To("noop"), Perms: ptr.To(fmt.Sprintf("%04o", mode)),
		ErrMissingKey: ptr.To(true),
	}
	if env {
		t.Envvars = ptr.To(true)
	}
	switch {
	case user != nil:
		t.Uid, t.Gid = ptr.To(int(*user)), ptr.To(int(*user))
	case b.driver == DriverExec && !env: // tasks of exec do not run as root
		t.Uid, t.Gid = ptr.To(nobody), ptr.To(nobody)
	}
	return t
}

// nobody is the user of tasks of the driver exec.
const nobody = 65534

// volumes mounts the volumes of the task.
func (b taskBuilder) volumes(t *task, at *field.Path) error {
	for i := range t.spec.VolumeMounts {
		m, p := &t.spec.VolumeMounts[i], at.Child("volumeMounts").Index(i)
		if b.driver == DriverRawExec {
			return errdefs.InvalidInputf("%s: the driver raw_exec has no file system of its own: use another driver, by the annotation %s", p, AnnotationDriver)
		}
		if strings.ContainsAny(m.MountPath, ":\n\x00") || !path.IsAbs(m.MountPath) || slices.Contains(strings.Split(m.MountPath, "/"), "..") {
			return errdefs.InvalidInputf("%s: %q: Nomad takes an absolute path without .. and colons", p.Child("mountPath"), m.MountPath)
		}
		if strings.ContainsAny(m.SubPath, ":\n\x00") { // the path is a part of source:target:mode
			return errdefs.InvalidInputf("%s: %q: Nomad takes a path without colons", p.Child("subPath"), m.SubPath)
		}
		j := slices.IndexFunc(b.Pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if j < 0 {
			return errdefs.InvalidInputf("%s: there is no volume %q", p.Child("name"), m.Name)
		}
		if err := b.mount(t, m, &b.Pod.Spec.Volumes[j], p); err != nil {
			return err
		}
	}
	return nil
}

func (b taskBuilder) mount(t *task, m *corev1.VolumeMount, v *corev1.Volume, at *field.Path) error {
	sub := path.Clean("/" + m.SubPath)[1:]
	if m.SubPathExpr != "" {
		return errdefs.InvalidInputf("%s: Nomad has no such paths", at.Child("subPathExpr"))
	}
	mount := path.Clean(m.MountPath)
	if slices.Contains(ownDirs, mount) {
		if mount != "/secrets" || !podspec.Written(v) || sub != "" {
			return errdefs.InvalidInputf("%s: %q: Nomad has a directory of its own there: mount the volume elsewhere", at.Child("mountPath"), m.MountPath)
		}
		return b.below(t, secretDir(m), b.Files[v.Name], isSecret(v), at)
	}
	var source string // relative to the directory of the task
	switch {
	case v.EmptyDir != nil:
		source = path.Join("../alloc/vk", v.Name, sub)
	case podspec.Written(v):
		dir := "local/vk/" + v.Name
		if isSecret(v) {
			dir = secretDir(m)
		}
		if b.driver == DriverExec && !isSecret(v) {
			return b.place(t, mount, sub, b.Files[v.Name], at)
		}
		if err := b.below(t, dir, b.Files[v.Name], isSecret(v), at); err != nil {
			return err
		}
		source = path.Join(dir, sub)
	default:
		return errdefs.InvalidInputf("%s: volume %q: volumes of this kind are not known here", at, v.Name)
	}
	if b.driver == DriverDocker {
		bind := source + ":" + m.MountPath
		if m.ReadOnly || podspec.Written(v) {
			bind += ":ro"
		}
		list, _ := t.Config["volumes"].([]string)
		t.Config["volumes"] = append(list, literal(bind))
		return nil
	}
	inside := "/" + strings.TrimPrefix(source, "../") // in the file system of a task of exec
	if v.EmptyDir != nil {
		t.mounts = append(t.mounts, "mkdir -p "+shellexec.Quote(inside)+"; chmod 777 "+shellexec.Quote(inside)+" 2>/dev/null")
	}
	// Move an existing directory aside: the link would otherwise be made inside it.
	t.mounts = append(t.mounts, fmt.Sprintf("{ [ ! -d %[3]s ] || [ -L %[3]s ] || mv %[3]s %[4]s; } && mkdir -p %[1]s && ln -sfn %[2]s %[3]s || exit 1",
		shellexec.Quote(path.Dir(mount)), shellexec.Quote(inside), shellexec.Quote(mount), shellexec.Quote(mount+".hidden")))
	return nil
}

// ownDirs are the directories that Nomad gives each task. The directory for secrets is in memory.
var ownDirs = []string{"/alloc", "/local", "/secrets"}

// secretDir returns the directory of the task for the files of a secret volume with this mount.
func secretDir(m *corev1.VolumeMount) string {
	if path.Clean(m.MountPath) == "/secrets" {
		return "secrets"
	}
	return "secrets/vk/" + m.Name
}

// itemName returns the name of a file in the Variable of its task. The name does not depend on other files,
// which may come and go.
func itemName(destination string) string {
	sum := sha256.Sum256([]byte(destination))
	return "f" + hex.EncodeToString(sum[:8])
}

// isSecret reports whether a volume has content that only its containers may read.
func isSecret(v *corev1.Volume) bool {
	if v.Projected == nil {
		return v.Secret != nil
	}
	return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
		return s.Secret != nil || s.ServiceAccountToken != nil
	})
}

// place writes files into the file system of an exec task, which exists only when the task starts.
func (b taskBuilder) place(t *task, mount, sub string, files []podspec.File, at *field.Path) error {
	for i := range files {
		f := files[i]
		rest := f.Path
		if sub != "" {
			after, ok := strings.CutPrefix(f.Path+"/", sub+"/")
			if !ok {
				continue
			}
			rest = strings.TrimSuffix(after, "/")
		}
		f.Path = rest
		if err := b.file(t, strings.TrimPrefix(path.Join(mount, rest), "/"), f, false, at); err != nil {
			return err
		}
	}
	return nil
}

// below writes files below a directory of the task. A file that several mounts share is written once.
func (b taskBuilder) below(t *task, dir string, files []podspec.File, secret bool, at *field.Path) error {
	for i := range files {
		if err := b.file(t, path.Join(dir, files[i].Path), files[i], secret, at); err != nil {
			return err
		}
	}
	return nil
}

func (b taskBuilder) file(t *task, destination string, f podspec.File, secret bool, at *field.Path) error {
	if strings.Contains(f.Path, "..") && slices.Contains(strings.Split(f.Path, "/"), "..") || strings.Contains(destination, "${") {
		return errdefs.InvalidInputf("%s: the path %q leads out of the volume, or Nomad would replace parts of it", at, f.Path)
	}
	if slices.ContainsFunc(t.Templates, func(k *nomadapi.Template) bool { return *k.DestPath == destination }) {
		return nil
	}
	text := template(f.Data)
	if secret {
		item := itemName(destination)
		t.items[item] = cmp.Or(base64.StdEncoding.EncodeToString(f.Data), "")
		text = itemTemplate(t.path, item)
	}
	t.Templates = append(t.Templates, b.template(destination, text, uint32(f.Mode.Perm()), f.User, false))
	return nil
}

// resources returns the requests of a task, rounded up to whole MHz and MiB.
func (b taskBuilder) resources(c *corev1.Container, at *field.Path) (*nomadapi.Resources, error) {
	ask := func(name corev1.ResourceName) (request, limit float64) {
		l := c.Resources.Limits[name]
		r, ok := c.Resources.Requests[name]
		if !ok {
			r = l
		}
		if r.IsZero() {
			r = b.config.DefaultResources[name]
		}
		return r.AsApproximateFloat64(), l.AsApproximateFloat64()
	}
	cpu, _ := ask(corev1.ResourceCPU)
	memory, memoryMax := ask(corev1.ResourceMemory)
	out := &nomadapi.Resources{
		CPU:      ptr.To(max(1, up(cpu*b.mhz))),
		MemoryMB: ptr.To(max(10, up(memory/(1<<20)))), // the minimum of Nomad
	}
	if most := up(memoryMax / (1 << 20)); most > *out.MemoryMB {
		out.MemoryMaxMB = &most
	}
	for name, quantity := range c.Resources.Limits {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			continue
		}
		if quantity.IsZero() {
			continue // Nomad accepts no request for 0 devices
		}
		device, ok := b.config.Devices[string(name)]
		if !ok {
			return nil, errdefs.InvalidInputf("%s: the node's configuration has no device for %s", at.Child("resources", "limits").Key(string(name)), name)
		}
		out.Devices = append(out.Devices, &nomadapi.RequestedDevice{Name: device, Count: ptr.To(uint64(quantity.Value()))})
	}
	return out, nil
}

// up rounds up, with a tolerance for floating-point errors.
func up(x float64) int { return int(math.Ceil(x - 1e-6)) }
