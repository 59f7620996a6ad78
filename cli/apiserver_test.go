// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// apiServer is as much of an API server as a node without pods needs: it stores created objects, and accepts every client with the token
// "good".
type apiServer struct {
	mu      sync.Mutex
	objects map[string]runtime.Object // by path; guarded by mu
	node    *corev1.Node              // as the program created it; guarded by mu
}

// startAPIServer returns a kubeconfig file for the server.
func startAPIServer(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: srv.URL}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test"}
	config.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Query().Get("sendInitialEvents") != "" {
		// After this answer the client lists first, as with older servers.
		s.answer(w, http.StatusUnprocessableEntity, &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		})
		return
	}
	if req.URL.Query().Get("watch") != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimSuffix(req.URL.Path, "/status")
	switch req.Method {
	case http.MethodGet:
		if obj, ok := s.objects[path]; ok {
			s.answer(w, http.StatusOK, obj)
			return
		}
		if name := filepath.Base(path); name == "pods" || name == "services" || name == "nodes" {
			s.answer(w, http.StatusOK, &corev1.PodList{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: strings.ToUpper(name[:1]) + name[1:len(name)-1] + "List"},
				ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			})
			return
		}
		s.answer(w, http.StatusNotFound, &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
		})
	case http.MethodPost, http.MethodPut:
		s.create(w, req, path)
	default: // patches are accepted and ignored
		s.answer(w, http.StatusOK, s.objects[path])
	}
}

func (s *apiServer) create(w http.ResponseWriter, req *http.Request, path string) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the client has disconnected
	}
	obj, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	obj.GetObjectKind().SetGroupVersionKind(*kind)
	switch o := obj.(type) {
	case *authenticationv1.TokenReview:
		o.Status.Authenticated = o.Spec.Token == "good"
		o.Status.User.Username = "tester"
	case *authorizationv1.SubjectAccessReview:
		o.Status.Allowed = o.Spec.User == "tester"
	case metav1.Object:
		o.SetUID("uid")
		o.SetResourceVersion("1")
		if req.Method == http.MethodPost {
			path += "/" + o.GetName()
		}
		s.objects[path] = obj
		if n, ok := obj.(*corev1.Node); ok {
			s.node = n.DeepCopy()
		}
	}
	s.answer(w, http.StatusCreated, obj)
}

func (s *apiServer) answer(w http.ResponseWriter, status int, obj any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(obj)
}

// nodeCalled returns a node as the program created it.
func (s *apiServer) nodeCalled(name string) *corev1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := s.objects["/api/v1/nodes/"+name].(*corev1.Node)
	return n
}
