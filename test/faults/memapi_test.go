// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/memapi"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// TestMemoryAPIIsLikeTheRealOne makes the same requests to both API servers and compares their answers and watch
// events.
func TestMemoryAPIIsLikeTheRealOne(t *testing.T) {
	api := testapi.Start(t)
	namespace, node := api.Namespace(t), api.NodeName(t)
	for _, c := range memapiCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			memory := memapi.New()
			real := &pods{T: t, name: strings.ReplaceAll(c.name, " ", "-"), namespace: namespace, node: node,
				PodInterface: once{api.Client.CoreV1().Pods(namespace), api.Client.CoreV1().RESTClient(), namespace}, change: changeReal, create: createReal}
			inMemory := &pods{T: t, name: real.name, namespace: "d", node: node,
				PodInterface: memory.Pods("d"), change: changeIn(memory), create: createIn(memory)}
			for _, p := range []*pods{real, inMemory} {
				c.steps(p)
				p.close()
			}
			if !slices.Equal(real.lines, inMemory.lines) {
				t.Errorf("the real API server:\n\t%s\nthe one in memory:\n\t%s",
					strings.Join(real.lines, "\n\t"), strings.Join(inMemory.lines, "\n\t"))
			}
		})
	}
}

// pods acts on one pod of an API server and records the answers and events.
type pods struct {
	*testing.T
	corev1client.PodInterface
	create func(*pods, *corev1.Pod) (*corev1.Pod, error)
	change func(*pods, func(*corev1.Pod)) error

	name, namespace, node string
	uid                   types.UID // of the pod
	since                 string    // resource version of its beginning
	lines                 []string
}

// once sends each list request once. client-go would retry ten times for a version that the API server does not
// know yet.
type once struct {
	corev1client.PodInterface
	client    rest.Interface
	namespace string
}

func (o once) List(ctx context.Context, opts metav1.ListOptions) (*corev1.PodList, error) {
	list := &corev1.PodList{}
	err := o.client.Get().Namespace(o.namespace).Resource("pods").VersionedParams(&opts, scheme.ParameterCodec).MaxRetries(0).Do(ctx).Into(list)
	return list, err
}

func createReal(p *pods, pod *corev1.Pod) (*corev1.Pod, error) {
	return p.Create(p.Context(), pod, metav1.CreateOptions{})
}

func changeReal(p *pods, change func(*corev1.Pod)) error {
	pod, err := p.Get(p.Context(), p.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	change(pod)
	_, err = p.Update(p.Context(), pod, metav1.UpdateOptions{})
	return err
}

func createIn(api *memapi.API) func(*pods, *corev1.Pod) (*corev1.Pod, error) {
	return func(p *pods, pod *corev1.Pod) (*corev1.Pod, error) {
		pod.Namespace = p.namespace
		return api.Create(pod), nil
	}
}

func changeIn(api *memapi.API) func(*pods, func(*corev1.Pod)) error {
	return func(p *pods, change func(*corev1.Pod)) error {
		api.Change(p.namespace, p.name, change)
		return nil
	}
}

func (p *pods) note(what string, err error) {
	if err != nil {
		what += ": " + string(apierrors.ReasonForError(err))
	}
	p.lines = append(p.lines, what)
}

// begin creates the pod with the given changes.
func (p *pods) begin(changes ...func(*corev1.Pod)) {
	p.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.name, Labels: map[string]string{"a": "1"}},
		Spec: corev1.PodSpec{
			NodeName: p.node, AutomountServiceAccountToken: new(bool), Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	pod, err := p.create(p, pod)
	if err != nil {
		p.Fatalf("create pod %s: %v", p.name, err)
	}
	p.uid, p.since = pod.UID, pod.ResourceVersion
}

// remove deletes with a grace period, or with the pod's own if it is negative.
func (p *pods) remove(grace int64, uid ...string) {
	opts := metav1.DeleteOptions{}
	if grace >= 0 {
		opts.GracePeriodSeconds = &grace
	}
	if len(uid) > 0 {
		opts.Preconditions = metav1.NewUIDPreconditions(uid[0])
	}
	p.note(fmt.Sprint("delete ", grace), p.Delete(p.Context(), p.name, opts))
}

// patch patches the status and records the pod's addresses in the answer.
func (p *pods) patch(body string) {
	pod, err := p.Patch(p.Context(), p.name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	what := "patch " + body
	if err == nil {
		what += fmt.Sprint(": ", pod.Status.PodIP, pod.Status.PodIPs)
	}
	p.note(what, err)
}

func (p *pods) edit(change func(*corev1.Pod)) { p.note("change", p.change(p, change)) }

// close records the watch events of the pod since its creation.
func (p *pods) close() {
	p.Helper()
	end := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.name + "-end"},
		Spec:       corev1.PodSpec{AutomountServiceAccountToken: new(bool), Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if _, err := p.create(p, end); err != nil {
		p.Fatalf("create the last pod: %v", err)
	}
	w, err := p.Watch(p.Context(), metav1.ListOptions{ResourceVersion: p.since})
	if err != nil {
		p.Fatalf("watch pods: %v", err)
	}
	defer w.Stop()
	for {
		select {
		case <-time.After(time.Minute):
			p.Fatalf("a watch does not tell that pod %s was created", end.Name)
		case e := <-w.ResultChan():
			pod, ok := e.Object.(*corev1.Pod)
			switch {
			case !ok:
				p.Fatalf("a watch tells %v", e)
			case pod.Name == end.Name:
				return
			case pod.Name == p.name:
				p.note(inCommon(e.Type, pod), nil)
			}
		}
	}
}

// inCommon returns the parts of an event that must be the same in both API servers.
func inCommon(kind watch.EventType, pod *corev1.Pod) string {
	s := fmt.Sprintf("%s generation=%d phase=%s labels=%v", kind, pod.Generation, pod.Status.Phase, pod.Labels)
	if pod.DeletionTimestamp != nil {
		s += fmt.Sprintf(" deleted, grace=%d", *pod.DeletionGracePeriodSeconds)
	}
	if len(pod.Finalizers) > 0 {
		s += fmt.Sprint(" finalizers=", pod.Finalizers)
	}
	for _, c := range pod.Status.Conditions {
		s += fmt.Sprintf(" %s=%s", c.Type, c.Status)
	}
	return s
}
