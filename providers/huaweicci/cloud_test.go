// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// These credentials are known to the cloud.
const (
	accessKey, secretKey = "AKTEST", "SKTEST/+="
	userName, password   = "node", "hunter2"
	projectID, domainID  = "0123456789abcdef", "fedcba9876543210"
)

// cloud is a fake CCI. It identifies callers by signature or token, allows the actions of the README's policy,
// refuses the same pods as CCI, and keeps the pods in a real API server under the names of CCI.
type cloud struct {
	worker *remotetest.Worker
	api    string
	proxy  *httputil.ReverseProxy
	url    string
	caFile string

	mu       sync.Mutex
	policy   map[string]bool      // guarded by mu; the allowed actions
	used     map[string]bool      // guarded by mu; the requested actions
	tokens   map[string]time.Time // guarded by mu; the expiry of each token
	logins   int                  // guarded by mu
	networks map[string][]network // guarded by mu; keyed by namespace
	quota    int                  // guarded by mu; the maximum number of pods, 0 for none
	throttle string               // guarded by mu; Retry-After of the answers; "" for none
	seen     []string             // guarded by mu; method and path
	refused  []string             // guarded by mu; the problems of refused pods
	there    map[string]types.UID // guarded by mu; the namespaces that were seen
	now      func() time.Time     // guarded by mu
}

func startCloud(t *testing.T, w *remotetest.Worker, version string) *cloud {
	t.Helper()
	c := &cloud{
		worker: w, api: version, policy: readmePolicy(t), tokens: map[string]time.Time{}, networks: map[string][]network{},
		there: map[string]types.UID{}, used: map[string]bool{}, now: time.Now,
	}
	c.proxy = c.toAPIServer(t)
	server := httptest.NewTLSServer(c)
	t.Cleanup(server.Close)
	c.url, c.caFile = server.URL, filepath.Join(t.TempDir(), "ca.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(c.caFile, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// ServeHTTP implements http.Handler.
func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		gateway(w, http.StatusBadRequest, "APIG.0001", err.Error())
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.mu.Lock()
	c.seen = append(c.seen, r.Method+" "+r.URL.Path)
	throttle := c.throttle
	c.mu.Unlock()
	if throttle != "" {
		w.Header().Set("Retry-After", throttle)
		gateway(w, http.StatusTooManyRequests, "APIG.0308", "The throttling threshold has been reached: policy ip over ratelimit")
		return
	}
	if r.URL.Path == "/v3/auth/tokens" {
		c.login(w, body)
		return
	}
	w.Header().Set("Date", c.time().UTC().Format(http.TimeFormat))
	if why := c.unknown(r, body); why != "" {
		gateway(w, http.StatusUnauthorized, "APIGW.0301", "Incorrect IAM authentication information: "+why)
		return
	}
	c.serve(w, r, body)
}

func (c *cloud) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

// gateway writes an error like the gateway in front of CCI.
func gateway(w http.ResponseWriter, code int, errorCode, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error_code": errorCode, "error_msg": message, "request_id": "4a0c3a7f"})
}

// status answers with an error in the form of CCI.
func status(w http.ResponseWriter, code int, reason, errorCode, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure",
		"message": message, "reason": reason, "code": code, "errorCode": errorCode,
	})
}

// unknown returns the reason why the caller of a request cannot be authenticated, or "".
func (c *cloud) unknown(r *http.Request, body []byte) string {
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.tokens[token].After(c.now()) {
			return "decrypt token fail"
		}
		return ""
	}
	given := r.Header.Get("Authorization")
	var names string
	for _, part := range strings.Split(strings.TrimPrefix(given, "SDK-HMAC-SHA256 "), ", ") {
		name, value, _ := strings.Cut(part, "=")
		switch {
		case name == "Access" && value != accessKey:
			return "get secretKey failed, appKey: " + value
		case name == "SignedHeaders":
			names = value
		}
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Sdk-Date"))
	if err != nil || c.time().Sub(at).Abs() > 15*time.Minute {
		return "x-sdk-date expired or is not valid"
	}
	for _, must := range []string{"host", "x-sdk-date", "x-project-id"} {
		if !strings.Contains(";"+names+";", ";"+must+";") {
			return "not signed: " + must
		}
	}
	if r.Header.Get("X-Project-Id") != projectID {
		return "another project"
	}
	if want := signature(r, body, strings.Split(names, ";")); !strings.HasSuffix(given, ", Signature="+want) {
		return "verify aksk signature fail"
	}
	return ""
}

// signature returns the signature of a request. It implements the documented algorithm, independently of package
// sign.
func signature(r *http.Request, body []byte, names []string) string {
	var pairs [][2]string
	for _, pair := range strings.Split(r.URL.RawQuery, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		var plain [2]string
		for i, s := range []string{name, value} {
			var err error
			if plain[i], err = url.QueryUnescape(s); err != nil {
				return ""
			}
		}
		pairs = append(pairs, plain)
	}
	sort.Slice(pairs, func(i, j int) bool { return pairs[i][0]+"\x00"+pairs[i][1] < pairs[j][0]+"\x00"+pairs[j][1] })
	var query []string
	for _, p := range pairs {
		query = append(query, strings.ReplaceAll(url.QueryEscape(p[0])+"="+url.QueryEscape(p[1]), "+", "%20"))
	}
	var text bytes.Buffer
	path := r.URL.EscapedPath()
	if !strings.HasSuffix(path, "/") {
		path += "/"
	}
	fmt.Fprintf(&text, "%s\n%s\n%s\n", r.Method, path, strings.Join(query, "&"))
	for _, name := range names {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		fmt.Fprintf(&text, "%s:%s\n", name, value)
	}
	fmt.Fprintf(&text, "\n%s\n%x", strings.Join(names, ";"), sha256.Sum256(body))
	mac := hmac.New(sha256.New, []byte(secretKey))
	fmt.Fprintf(mac, "SDK-HMAC-SHA256\n%s\n%x", r.Header.Get("X-Sdk-Date"), sha256.Sum256(text.Bytes()))
	return fmt.Sprintf("%x", mac.Sum(nil))
}

// login answers like the IAM service.
func (c *cloud) login(w http.ResponseWriter, body []byte) {
	var asked struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct {
						Name, Password string
						Domain         struct{ Name string }
					}
				}
			}
			Scope struct{ Project struct{ ID string } }
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logins++
	user := &asked.Auth.Identity.Password.User
	if json.Unmarshal(body, &asked) != nil || user.Name != userName || user.Password != password || user.Domain.Name != "account" || asked.Auth.Scope.Project.ID != projectID {
		gateway(w, http.StatusUnauthorized, "IAM.0001", "the username or password is wrong: "+string(body))
		return
	}
	token, ends := fmt.Sprintf("token-%d", c.logins), c.now().Add(24*time.Hour)
	c.tokens[token] = ends
	w.Header().Set("X-Subject-Token", token)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"token": map[string]any{"expires_at": ends.UTC().Format("2006-01-02T15:04:05.000000Z")}})
}
