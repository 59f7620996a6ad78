// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

const (
	// maxMessage bounds a termination message, and maxMessages all messages of a pod together.
	maxMessage  = 4096
	maxMessages = 12 * 1024
)

// messages are the files with the termination messages of pods. Like the containers, they outlive the volumes.
type messages struct {
	dir string // one directory for each pod
}

// file returns the path of an instance's termination message.
func (m messages) file(uid types.UID, container string, attempt uint32) string {
	return filepath.Join(m.dir, string(uid), container, strconv.FormatUint(uint64(attempt), 10))
}

// removePod removes the messages of a pod.
func (m messages) removePod(uid types.UID) error {
	return os.RemoveAll(filepath.Join(m.dir, string(uid)))
}

// listPods returns the pods with messages.
func (m messages) listPods() ([]types.UID, error) {
	entries, err := os.ReadDir(m.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var uids []types.UID
	for _, e := range entries {
		uids = append(uids, types.UID(e.Name()))
	}
	return uids, err
}

// makeMount makes the file for the termination message of an instance.
func (m messages) makeMount(pod *corev1.Pod, c *corev1.Container, attempt uint32) (*runtimeapi.Mount, error) {
	if c.TerminationMessagePath == "" {
		return nil, nil
	}
	path := m.file(pod.UID, c.Name, attempt)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make the directory for the termination message: %w", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return nil, fmt.Errorf("make the file for the termination message: %w", err)
	}
	// The container may run as any user.
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // only this container sees the file
		return nil, fmt.Errorf("make the file for the termination message: %w", err)
	}
	inside := c.TerminationMessagePath
	if !filepath.IsAbs(inside) {
		inside = "/" + inside
	}
	return &runtimeapi.Mount{ContainerPath: inside, HostPath: path}, nil
}

// terminationMessage returns the message of an ended container: the runtime's message and the container's own message. It reads the file once,
// because the file does not outlive the pod.
func (w *worker) terminationMessage(ctx context.Context, before plan.Container, c *containerView, s *runtimeapi.ContainerStatus) string {
	if before.State == plan.Exited {
		return before.Message
	}
	fallback := c.meta.Annotations[criconfig.AnnotationTerminationMessagePolicy] == string(corev1.TerminationMessageFallbackToLogsOnError) &&
		s.ExitCode != 0 && s.Reason != "ContainerCannotRun"
	words := ""
	if c.meta.Annotations[criconfig.AnnotationTerminationMessagePath] != "" {
		text, err := readTail(w.exec.messages.file(w.id.uid, c.seen.Name, c.seen.Attempt))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			text, fallback = fmt.Sprintf("Error on reading termination log: %v", err), false
		}
		words = text
	}
	if words == "" && fallback && c.log != "" {
		words = w.exec.logs.TerminationMessage(ctx, c.log)
	}
	switch {
	case words == "":
		return s.Message
	case s.Message == "":
		return words
	}
	return s.Message + ": " + words
}

// readTail returns the end of a container's file. It does not follow a link or wait for a pipe, because a container without its own file system may
// have replaced the file.
func readTail(path string) (string, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer root.Close()
	named, err := root.Lstat(filepath.Base(path))
	if err != nil {
		return "", err
	}
	f, err := root.OpenFile(filepath.Base(path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !named.Mode().IsRegular() || !os.SameFile(named, info) { // the file may have been replaced
		return "", errors.New("it is not an ordinary file")
	}
	if from := info.Size() - maxMessage; from > 0 {
		if _, err := f.Seek(from, io.SeekStart); err != nil {
			return "", err
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxMessage))
	return string(text), err
}
