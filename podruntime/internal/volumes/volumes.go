// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Volumes are the volumes of all pods of a node. Its methods can be called from any goroutine; those about one
// pod wait for each other.
type Volumes struct {
	cfg     Config
	objects Objects
	tokens  Tokens
}

// New looks at the machine and prepares the directories.
func New(cfg Config) (*Volumes, error) { return &Volumes{cfg: cfg}, nil }

// UseObjects says where ConfigMaps and Secrets are read. It is called once, before Setup.
func (v *Volumes) UseObjects(o Objects) { v.objects = o }

// UseTokens says where tokens come from. It is called once, before Setup.
func (v *Volumes) UseTokens(t Tokens) { v.tokens = t }

// Medium says, for a log, what volumes in memory are on this machine.
func (v *Volumes) Medium() string { return "" }

// Check refuses pods with volumes that this node cannot give, whatever it tries: the error is of the kind
// invalid-input, and names the volume and the field.
func (v *Volumes) Check(pod *corev1.Pod) error { return nil }

// Dir makes, if need be, the directory of the pod, for files of the pod that are no volumes, and returns its path.
// Remove removes it with all that is in it.
func (v *Volumes) Dir(uid types.UID) (string, error) { return "", nil }

// Setup makes the volumes of the pod that containers name. It can be called again at any time, and then
// does what is missing. The error is an *Error.
func (v *Volumes) Setup(ctx context.Context, pod *corev1.Pod) error { return nil }

// Refresh brings those volumes that are written from the API up to date, and says when to
// look again. It is called earlier when labels or annotations of the pod have changed. The error is
// an *Error; a volume in it keeps its files.
func (v *Volumes) Refresh(ctx context.Context, pod *corev1.Pod) (again time.Duration, err error) {
	return time.Minute, nil
}

// Mounts returns the mounts of a container, in the order of its volumeMounts. The environment of the container
// is resolved: it is what subPathExpr is expanded with. An error is fit for the message of CreateContainerConfigError.
func (v *Volumes) Mounts(ctx context.Context, pod *corev1.Pod, container *corev1.Container) ([]*runtimeapi.Mount, error) {
	return nil, nil
}

// EnvFiles returns pod, or a copy of it, in which the variables of the container that are to be read from files
// of volumes (fileKeyRef) have their values. It is called when the container starts, before its environment is resolved.
func (v *Volumes) EnvFiles(pod *corev1.Pod, container string) (*corev1.Pod, error) { return pod, nil }

// Exceeded says whether a volume of the pod is larger than its sizeLimit: the text is that of an eviction, "" is no.
func (v *Volumes) Exceeded(ctx context.Context, pod *corev1.Pod) (string, error) { return "", nil }

// Usage returns the bytes that each volume set up for the pod uses, by name of the volume.
func (v *Volumes) Usage(ctx context.Context, pod *corev1.Pod) (map[string]Use, error) { return nil, nil }

// Use is what a volume uses.
type Use struct {
	// Bytes are those of the blocks that its files have.
	Bytes int64
	// Inodes is the number of files and directories.
	Inodes int64
	// Memory says that it is in memory.
	Memory bool
}

// Remove removes everything that the pod has on the machine. No container of the pod may run. It can be called again after
// an error, and for a pod of which nothing is known.
func (v *Volumes) Remove(uid types.UID) error { return nil }

// Pods returns the UIDs of which something is on the machine, left by an earlier process perhaps.
func (v *Volumes) Pods() ([]types.UID, error) { return nil, nil }

// Error says which volumes of a pod cannot be set up.
type Error struct {
	// Volumes has an error for each of them, with the text of a kubelet's event FailedMount:
	// MountVolume.SetUp failed for volume "x" : configmap "y" not found.
	Volumes []error
}

// Error joins the texts.
func (e *Error) Error() string { return "" }

// Unwrap returns the errors.
func (e *Error) Unwrap() []error { return e.Volumes }
