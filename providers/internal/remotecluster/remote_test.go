// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// remote is a fake API server for synctest bubbles. It lists the given pods, and accepts every write.
type remote struct {
	pods  corev1.PodList
	nodes corev1.NodeList

	mu       sync.Mutex
	dark     chan struct{}          // guarded by mu; closed while the server does not answer
	cut      chan struct{}          // guarded by mu; closed when watches end
	posted   map[string]*corev1.Pod // guarded by mu; the created pods by name, which no watch shows
	hangs    chan struct{}          // guarded by mu; nil, or closed when deletions may be answered
	loses    bool                   // guarded by mu; loses the responses to creates of pods
	refuses  string                 // guarded by mu; the end of the path and the field selector that may not be listed or watched
	requests []string               // guarded by mu
}

func (r *remote) goDark() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.dark)
	close(r.cut)
}

// refuse forbids listing and watching a resource, and ends watches. With "" everything is allowed again.
func (r *remote) refuse(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.cut)
	r.cut, r.refuses = make(chan struct{}), what
}

// asked returns the requests since the last call.
func (r *remote) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.requests
	r.requests = nil
	return was
}

// RoundTrip implements http.RoundTripper.
func (r *remote) RoundTrip(q *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.requests = append(r.requests, q.Method+" "+q.URL.Path)
	dark, cut, refuses, hangs := r.dark, r.cut, r.refuses, r.hangs
	r.mu.Unlock()
	if hangs != nil && q.Method == http.MethodDelete {
		<-hangs
	}
	select {
	case <-dark:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	default:
	}
	answer := func(code int, body io.ReadCloser) (*http.Response, error) {
		kind := []string{"application/json"}
		if body == q.Body { // the body of the request itself
			kind = q.Header["Content-Type"]
		}
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": kind}, Body: body, Request: q}, nil
	}
	text := func(code int, o any) (*http.Response, error) {
		all, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		return answer(code, io.NopCloser(bytes.NewReader(all)))
	}
	if name, is := strings.CutPrefix(path.Base(q.URL.Path), "web-"); is && strings.HasSuffix(path.Dir(q.URL.Path), "/pods") && q.Method == http.MethodGet {
		r.mu.Lock()
		pod := r.posted["web-"+name]
		r.mu.Unlock()
		if pod != nil {
			return text(http.StatusOK, pod)
		}
		status := apierrors.NewNotFound(corev1.Resource("pods"), name).Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		return text(http.StatusNotFound, status)
	}
	if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/pods") {
		return r.post(q, text)
	}
	switch {
	case q.Method == http.MethodPost, q.Method == http.MethodPut:
		return answer(http.StatusOK, q.Body)
	case refuses != "" && strings.HasSuffix(q.URL.Path+"?"+q.URL.Query().Get("fieldSelector"), refuses):
		status := apierrors.NewForbidden(corev1.Resource("things"), "", errors.New("cannot list")).Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		return text(http.StatusForbidden, status)
	case q.URL.Query().Get("sendInitialEvents") != "":
		return text(http.StatusUnprocessableEntity, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid})
	case q.URL.Query().Get("watch") != "":
		return answer(http.StatusOK, silent{q.Context(), cut})
	case strings.HasSuffix(q.URL.Path, "/services/kubernetes"):
		return text(http.StatusOK, corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: "there"}})
	case strings.HasSuffix(q.URL.Path, "/pods") && strings.Contains(q.URL.Query().Get("labelSelector"), LabelNode):
		return text(http.StatusOK, r.pods)
	case strings.HasSuffix(q.URL.Path, "/nodes"):
		return text(http.StatusOK, r.nodes)
	}
	return text(http.StatusOK, metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
}

// post creates a pod that no watch shows.
func (r *remote) post(q *http.Request, text func(int, any) (*http.Response, error)) (*http.Response, error) {
	all, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(all, nil, nil)
	if err != nil {
		return nil, err
	}
	pod := o.(*corev1.Pod)
	pod.TypeMeta = metav1.TypeMeta{}
	pod.UID = "posted"
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.posted == nil {
		r.posted = map[string]*corev1.Pod{}
	}
	r.posted[pod.Name] = pod
	if r.loses {
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return text(http.StatusCreated, pod)
}

// forget removes all created pods.
func (r *remote) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.posted)
}

// silent is the body of a watch without events.
type silent struct {
	ctx  context.Context
	ends <-chan struct{}
}

func (s silent) Read([]byte) (int, error) {
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-s.ends:
		return 0, syscall.ECONNRESET
	}
}

func (silent) Close() error { return nil }

// counted issues tokens that are immediately due for renewal, and counts them.
type counted struct {
	mu sync.Mutex
	n  int // guarded by mu
}

// Token implements node.PodTokens.
func (c *counted) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return node.PodToken{Token: fmt.Sprint(c.n), RefreshAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}, nil
}

func (c *counted) taken() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	c.n = 0
	return n
}

// withToken returns the i-th pod at home, with a token volume.
func withToken(i int) *corev1.Pod {
	home := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprint(i))}}
	home.Spec.Containers = []corev1.Container{{Name: "main", Image: "program"}}
	home.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}}}
	return home
}

// inMemory returns a cluster that uses r. The home cluster and the remote cluster have the given number of pods.
func inMemory(t *testing.T, r *remote, pods int, listed func() bool) *Cluster {
	t.Helper()
	r.dark, r.cut = make(chan struct{}), make(chan struct{})
	r.pods.ResourceVersion, r.nodes.ResourceVersion = "1", "1"
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := services.Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: serviceOfAPI, UID: "here"}}); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{
		Home: testHome, REST: &rest.Config{Host: "http://remote.test", Transport: r, QPS: -1}, Claim: true, Listed: listed,
		Pods: corev1listers.NewPodLister(index), Services: corev1listers.NewServiceLister(services),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		home := withToken(i)
		if err := index.Add(home); err != nil {
			t.Fatal(err)
		}
		tr, err := c.translatePod(home, nil)
		if err != nil {
			t.Fatal(err)
		}
		tr.Pod.UID, tr.Pod.ResourceVersion, tr.Pod.Status.Phase = home.UID, "1", corev1.PodRunning
		r.pods.Items = append(r.pods.Items, *tr.Pod)
		c.tracked[home.UID] = nameOf(home)
	}
	return c
}
