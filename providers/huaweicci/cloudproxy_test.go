// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// toAPIServer returns a proxy to the API server that holds the pods. The proxy uses HTTP/1.1, in which a request
// can become a stream.
func (c *cloud) toAPIServer(t *testing.T) *httputil.ReverseProxy {
	t.Helper()
	config := c.worker.API.Config
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	plain := &http.Transport{TLSClientConfig: tlsConfig}
	t.Cleanup(plain.CloseIdleConnections)
	transport, err := rest.HTTPWrappersForConfig(config, plain)
	if err != nil {
		t.Fatal(err)
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: nil,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(host)
			for _, name := range []string{"Authorization", "X-Auth-Token", "X-Sdk-Date", "X-Project-Id", "Accept-Encoding"} {
				r.Out.Header.Del(name)
			}
		},
		ModifyResponse: c.names,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			gateway(w, http.StatusBadGateway, "APIG.0201", err.Error())
		},
	}
}

// serve answers an authenticated request.
func (c *cloud) serve(w http.ResponseWriter, r *http.Request, body []byte) {
	action := c.action(r)
	c.mu.Lock()
	c.used[action] = true
	allowed := c.policy[action]
	c.mu.Unlock()
	switch {
	case action == "":
		status(w, http.StatusNotFound, "NotFound", "", "the server could not find the requested resource: "+r.Method+" "+r.URL.Path)
		return
	case !allowed:
		status(w, http.StatusForbidden, "Forbidden", "CCI.01.403001", "the policy does not allow "+action)
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	i := slices.Index(parts, "namespaces")
	if len(parts) > i+2 && !c.hasNamespace(r.Context(), parts[i+1]) {
		status(w, http.StatusNotFound, "NotFound", "CCI.01.404102", "namespace not found: "+parts[i+1])
		return
	}
	if strings.HasPrefix(action, "cci:network:") {
		c.hasNamespace(r.Context(), parts[i+1])
		c.serveNetworks(w, r, parts[i+1], body)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/log") {
		for name := range r.URL.Query() {
			if !slices.Contains(logQuery, name) {
				status(w, http.StatusBadRequest, "BadRequest", "CCI.01.400101", "logs have no "+name)
				return
			}
		}
	}
	toPods := r.Method == http.MethodPost && parts[len(parts)-1] == "pods"
	if toPods {
		if why := c.wrongPod(body); why != "" {
			c.mu.Lock()
			c.refused = append(c.refused, why)
			c.mu.Unlock()
			status(w, http.StatusBadRequest, "BadRequest", "CCI.01.400101", "request body error: "+why)
			return
		}
		if c.quotaReached(r.Context(), parts[i+1]) {
			status(w, http.StatusForbidden, "Forbidden", "CCI.01.403106", "exceeded quota: pods, used: all")
			return
		}
	}
	if err := c.toCore(r, body, toPods); err != nil {
		status(w, http.StatusBadRequest, "BadRequest", "CCI.01.400101", err.Error())
		return
	}
	c.proxy.ServeHTTP(w, r)
}

// hasNamespace reports whether a namespace exists, together with the objects that pods need in it.
func (c *cloud) hasNamespace(ctx context.Context, name string) bool {
	client := c.worker.API.Client.CoreV1()
	ns, err := client.Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false
	}
	c.mu.Lock()
	known, before := c.there[name]
	if before && (err != nil || known != ns.UID) { // its networks were deleted with the namespace
		delete(c.there, name)
		delete(c.networks, name)
	}
	c.mu.Unlock()
	if err != nil || known == ns.UID {
		return err == nil
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for { // CCI has no service accounts; the API server here wants one
		_, err := client.ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if err == nil || !apierrors.IsNotFound(err) {
			break
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.there[name] = ns.UID
	return true
}

func (c *cloud) quotaReached(ctx context.Context, namespace string) bool {
	c.mu.Lock()
	quota := c.quota
	c.mu.Unlock()
	if quota == 0 {
		return false
	}
	list, err := c.worker.API.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	return err != nil || len(list.Items) >= quota
}

func (c *cloud) serveNetworks(w http.ResponseWriter, r *http.Request, namespace string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPost {
		var n network
		if err := json.Unmarshal(body, &n); err != nil || n.APIVersion != "yangtse/v2" || n.Kind != "Network" || n.Metadata.Annotations["yangtse.io/project-id"] != projectID ||
			n.Metadata.Annotations["yangtse.io/domain-id"] != domainID || len(n.Spec.Subnets) == 0 || n.Spec.Subnets[0].ID == "" || len(n.Spec.SecurityGroups) == 0 {
			status(w, http.StatusBadRequest, "BadRequest", "CCI.01.400202", "project id in network request body invalid")
			return
		}
		n.Status.Status = "Ready"
		c.networks[namespace] = append(c.networks[namespace], n)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "NetworkList", "apiVersion": "yangtse/v2", "items": c.networks[namespace]})
}

// toCore translates a request for the API server. Pods get the worker of the test, and nothing of its service
// account.
func (c *cloud) toCore(r *http.Request, body []byte, isPod bool) error {
	rest, isCCI := strings.CutPrefix(r.URL.Path, "/apis/cci/v2/")
	if isCCI {
		r.URL.Path = "/api/v1/" + rest
	}
	if len(body) == 0 || r.Method == http.MethodPatch {
		return nil
	}
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return err
	}
	if isCCI {
		if object["apiVersion"] != "cci/v2" {
			return fmt.Errorf("%v in the version %v cannot be handled as cci/v2", object["kind"], object["apiVersion"])
		}
		object["apiVersion"] = "v1"
	}
	if isPod {
		spec := object["spec"].(map[string]any)
		spec["nodeSelector"] = map[string]any{remotetest.Label: c.worker.Name}
		spec["tolerations"] = []any{map[string]any{"operator": "Exists"}}
		spec["automountServiceAccountToken"], spec["enableServiceLinks"] = false, false
	}
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	r.Header.Set("Content-Length", strconv.Itoa(len(data)))
	return nil
}

// names translates a response of the API server to the names of CCI.
func (c *cloud) names(answer *http.Response) error {
	if c.api == API10 || answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusCreated || !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
		return nil
	}
	answer.Header.Del("Content-Length")
	answer.ContentLength = -1
	from := answer.Body
	out, in := io.Pipe()
	answer.Body = struct {
		io.Reader
		io.Closer
	}{out, from}
	go func() { // ends with the answer
		lines := bufio.NewReader(from)
		for {
			line, err := lines.ReadBytes('\n')
			if len(bytes.TrimSpace(line)) > 0 {
				if _, err := in.Write(cciNames(line)); err != nil {
					return
				}
			}
			if err != nil {
				_ = in.CloseWithError(err)
				return
			}
		}
	}()
	return nil
}

// cciNames translates a line: the API server writes each object, list or event as one line.
func cciNames(line []byte) []byte {
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil {
		return line
	}
	all := []any{object, object["object"]}
	if items, ok := object["items"].([]any); ok {
		all = append(all, items...)
	}
	for _, o := range all {
		if m, ok := o.(map[string]any); ok && m["apiVersion"] == "v1" && m["kind"] != "Status" {
			m["apiVersion"] = "cci/v2"
		}
	}
	data, err := json.Marshal(object)
	if err != nil {
		return line
	}
	return append(data, '\n')
}
