// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec/shelltest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// shelled runs containers with a stand-in for a shell.
type shelled struct {
	*inprocess.Provider
	secrets cache.Indexer

	mu        sync.Mutex
	addresses map[string]string // guarded by mu; addresses of listening pods, by name
	listeners []net.Listener    // guarded by mu
}

func newShelled(ctx context.Context, containers *inprocess.Cloud) *shelled {
	s := &shelled{secrets: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}), addresses: map[string]string{}}
	s.Provider = inprocess.Open(containers, inprocess.Objects{Secrets: corev1listers.NewSecretLister(s.secrets)})
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, l := range s.listeners {
			_ = l.Close()
		}
	})
	return s
}

// CreatePod runs the script of the container that writes files in the shell of this machine, and gives the
// written files to the other containers. Pods that listen get a loopback address.
func (s *shelled) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	pod = pod.DeepCopy()
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == filesName {
			if err := s.write(ctx, pod, c); err != nil {
				return err
			}
		}
	}
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == waiterName { // its shell does nothing
			c.Command, c.Args = nil, program.Program{}.Args()
		}
		if said, err := program.Parse(pod.Spec.Containers[i].Args); err == nil && said.Listen > 0 {
			if err := s.listen(ctx, pod, said.Listen); err != nil {
				return err
			}
		}
	}
	return s.Provider.CreatePod(ctx, pod)
}

func (s *shelled) write(ctx context.Context, pod *corev1.Pod, c *corev1.Container) error {
	dir, err := os.MkdirTemp("", "fargate-files-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, m := range c.VolumeMounts {
		if err := os.Mkdir(filepath.Join(dir, m.Name), 0o755); err != nil { //nolint:gosec // as a volume is
			return err
		}
	}
	shell := exec.CommandContext(ctx, c.Command[0], append(c.Command[1:], strings.ReplaceAll(c.Args[0], filesDir, dir))...)
	shell.Env = []string{"PATH=" + os.Getenv("PATH")}
	for _, e := range c.Env {
		shell.Env = append(shell.Env, e.Name+"="+e.Value)
	}
	if said, err := shell.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", c.Name, err, said)
	}
	c.Command, c.Args = nil, program.Program{}.Args()
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		root := filepath.Join(dir, v.Name)
		if _, err := os.Stat(root); err != nil {
			continue // the container has no files
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name + "-" + v.Name}, Data: map[string][]byte{}}
		source := &corev1.SecretVolumeSource{SecretName: secret.Name, Optional: ptr.To(true)}
		if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			key := strconv.Itoa(len(secret.Data))
			secret.Data[key], err = os.ReadFile(path)
			source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: strings.TrimPrefix(path, root+"/"), Mode: ptr.To(int32(info.Mode().Perm()))})
			return err
		}); err != nil {
			return err
		}
		if err := s.secrets.Add(secret); err != nil {
			return err
		}
		v.VolumeSource = corev1.VolumeSource{Secret: source}
	}
	return nil
}

// given is the number of loopback addresses handed out so far.
var given atomic.Int32

func (s *shelled) listen(ctx context.Context, pod *corev1.Pod, port int32) error {
	n := given.Add(1)
	ip := fmt.Sprintf("127.91.%d.%d", n/250, 1+n%250)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.addresses[pod.Name] = ip
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = s.PortForward(ctx, pod.Namespace, pod.Name, port, conn) // the caller sees the end of the connection
			}()
		}
	}()
	return nil
}

// at returns the pod with its address.
func (s *shelled) at(pod *corev1.Pod) *corev1.Pod {
	s.mu.Lock()
	ip := s.addresses[pod.Name]
	s.mu.Unlock()
	if ip != "" {
		pod = pod.DeepCopy()
		pod.Status.PodIP = ip
	}
	return pod
}

// GetPod implements nodeutil.Provider.
func (s *shelled) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, err := s.Provider.GetPod(ctx, namespace, name)
	if err != nil || pod == nil {
		return pod, err
	}
	return s.at(pod), nil
}

// RunInContainer implements nodeutil.Provider.
func (s *shelled) RunInContainer(ctx context.Context, namespace, pod, container string, cmd []string, attach api.AttachIO) error {
	run := func(command []string, attach api.AttachIO) error {
		return s.Provider.RunInContainer(ctx, namespace, pod, container, command, attach)
	}
	if len(cmd) < 6 || cmd[0] != "sh" {
		return run(cmd, attach)
	}
	return shelltest.Run(cmd, attach, run)
}

// TestFrames decodes a message in the layout that the vendor's client documents, and broken messages.
func TestFrames(t *testing.T) {
	f := frame{kind: typeInput, number: 5, flags: 1, id: [16]byte{1, 2, 3, 15: 9}, payload: payloadOutput, data: []byte("ls\n")}
	m := f.marshal()
	if len(m) != 123 || m[3] != 116 || string(m[4:23]) != typeInput+"  " || m[36+3] != 1 || m[48+7] != 5 || m[56+7] != 1 || m[64+7] != 9 || m[72] != 1 || m[112+3] != 1 || m[116+3] != 3 {
		t.Errorf("got %x", m)
	}
	got, err := unmarshal(m)
	if err != nil || got.kind != f.kind || got.number != 5 || got.id != f.id || string(got.data) != "ls\n" {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, broken := range map[string][]byte{"short": m[:119], "cut": m[:122], "empty": nil, "other payload": append(m[:122:122], 'x')} {
		if _, err := unmarshal(broken); err == nil {
			t.Errorf("%s: it is believed", name)
		}
	}
}
