// SPDX-License-Identifier: Apache-2.0

package certapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certapi"
)

// server is an API server with a group of APIs. It records its requests.
type server struct {
	mu     sync.Mutex
	served map[string][]string // resources by version
	lists  map[string]any      // items by path
	status int                 // of every response about a resource, if it is not 0
	asked  []string
	posted []byte
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/apis/certificates.k8s.io/")
	version, resource, deep := strings.Cut(path, "/")
	resources, ok := s.served[version]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Header.Get("Accept") != "application/json":
		http.Error(w, "this server has no "+r.Header.Get("Accept"), http.StatusNotAcceptable)
		return
	case !ok:
		http.NotFound(w, r)
		return
	case !deep:
		list := []map[string]string{{"name": "certificatesigningrequests"}}
		for _, name := range resources {
			list = append(list, map[string]string{"name": name}, map[string]string{"name": name + "/status"})
		}
		answerOf(w, map[string]any{"kind": "APIResourceList", "resources": list})
		return
	}
	s.asked = append(s.asked, r.Method+" "+path+" "+r.URL.Query().Encode())
	has := false
	for _, name := range resources {
		has = has || resource == name || strings.HasSuffix(resource, "/"+name)
	}
	switch {
	case s.status != 0:
		w.WriteHeader(s.status)
		answerOf(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "not for you", "code": s.status})
	case !has:
		http.NotFound(w, r)
	case r.Method == http.MethodPost:
		s.posted, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		answerOf(w, map[string]any{"metadata": map[string]string{"name": "made"}})
	default:
		answerOf(w, map[string]any{"items": s.lists[path]})
	}
}

// answerOf writes JSON. It ignores write errors, which the client detects itself.
func answerOf(w io.Writer, o any) { _ = json.NewEncoder(w).Encode(o) }

func (s *server) api(t *testing.T) *certapi.API {
	t.Helper()
	at := httptest.NewServer(s)
	t.Cleanup(at.Close)
	// The content type is protobuf, as nodes use it for other kinds. The requests for these kinds must not
	// depend on it.
	client, err := kubernetes.NewForConfig(&rest.Config{Host: at.URL, ContentConfig: rest.ContentConfig{
		ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
	}})
	if err != nil {
		t.Fatal(err)
	}
	return certapi.New(client.CoreV1().RESTClient())
}

// questions returns the requests since the last call.
func (s *server) questions() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := strings.Join(s.asked, "\n")
	s.asked = nil
	return asked
}

func (s *server) serve(served map[string][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served = served
}
