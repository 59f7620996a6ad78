// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// requestTimeout bounds every request except requests for logs.
const requestTimeout = 30 * time.Second

// forgetTimeout bounds a forget request. The provider reads no states while the request lasts.
const forgetTimeout = 5 * time.Second

// createTimeout bounds a create request. A plugin needs time to submit a job to a busy scheduler.
const createTimeout = 2 * time.Minute

// maxAnswer bounds the bytes read from one answer. 64 MiB hold some ten thousand pods.
const maxAnswer = 64 << 20

// client sends requests to the API server.
type client struct {
	base   string
	http   *http.Client
	token  func(context.Context) string
	number atomic.Uint64
	tls    TLS
	probes atomic.Bool  // the plugin reports the readiness of containers
	files  atomic.Value // string; the state of the files of tls at the last request
}

func newClient(c Config) (*client, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("interlink provider: url: %w", err)
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	transport := &http.Transport{
		DialContext: dialer.DialContext, Proxy: http.ProxyFromEnvironment,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	base := strings.TrimSuffix(c.URL, "/")
	switch u.Scheme {
	case "unix":
		base, transport.Proxy = "http://interlink", nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", u.Path)
		}
	case "https":
		if transport.TLSClientConfig, err = c.TLS.files().Config(); err != nil { // for a proxy of the environment
			return nil, fmt.Errorf("interlink provider: tls: %w", err)
		}
		transport.DialTLSContext = c.TLS.files().DialTLS
	}
	return &client{base: base, http: &http.Client{Transport: transport, CheckRedirect: refuseRedirect}, token: c.Token.Value, tls: c.TLS}, nil
}

// refuseRedirect stops redirects, so that pods and tokens go only to the configured server. A proxy that requires a login answers with
// a redirect.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// do sends a request and returns the answer. The caller closes the body. Any status other than 200 becomes an
// error of the type *answerError.
func (c *client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var data []byte
	switch b := body.(type) {
	case nil:
	case string:
		data = []byte(b)
	default:
		var err error
		if data, err = json.Marshal(b); err != nil {
			return nil, fmt.Errorf("interLink %s: %w", path, err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("interLink %s: %w", path, err)
	}
	session := fmt.Sprintf("%s#%d", strings.TrimPrefix(path, "/"), c.number.Add(1))
	req.Header.Set(wire.HeaderSession, session)
	req.Header.Set("Content-Type", "application/json")
	if token := c.token(ctx); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if now := c.tls.state(); c.files.Swap(now) != now {
		c.http.CloseIdleConnections() // the connections were made with files that have been replaced
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var known *url.Error
		if errors.As(err, &known) {
			err = known.Err // without the URL
		}
		return nil, fmt.Errorf("interLink API server, %s: %w", session, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, refusal(resp, session)
	}
	return resp, nil
}

// read sends a request and returns the body of the answer.
func (c *client) read(ctx context.Context, timeout time.Duration, method, path string, body any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("interLink %s: the answer broke off: %w", path, err)
	case len(data) > maxAnswer:
		return nil, fmt.Errorf("interLink %s: the answer has more than %d bytes", path, maxAnswer)
	}
	return data, nil
}

// ask sends a request and decodes the answer into out. It ignores the answer if out is nil.
func (c *client) ask(ctx context.Context, timeout time.Duration, method, path string, body, out any) error {
	data, err := c.read(ctx, timeout, method, path, body)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("interLink %s: the answer does not follow the protocol: %w", path, err)
	}
	return nil
}

// statuses returns the states of pods known to the server. Pods unknown to the server are left out.
func (c *client) statuses(ctx context.Context, pods []*corev1.Pod) ([]wire.PodStatus, error) {
	var all []wire.PodStatus
	if err := c.ask(ctx, requestTimeout, http.MethodGet, wire.PathStatus, pods, &all); err != nil {
		return nil, err
	}
	if tellsReady(all) {
		c.probes.Store(true)
	}
	return all, nil
}

// find requests all of pods at once, and the first pod alone if the answer lacks it. find returns false if the server does not have
// the first pod.
func (c *client) find(ctx context.Context, pods []*corev1.Pod) (wire.PodStatus, bool, error) {
	uid := pods[0].UID
	of := func(s wire.PodStatus) bool { return s.UID == string(uid) }
	said, err := c.statuses(ctx, stubs(pods))
	if len(pods) > 1 && (ofPlugin(err) || err == nil && !slices.ContainsFunc(said, of)) {
		said, err = c.statuses(ctx, stubs(pods[:1]))
	}
	switch i := slices.IndexFunc(said, of); {
	case lacksPod(err, uid):
		return wire.PodStatus{}, false, nil
	case err == nil && i >= 0 && told(said[i]):
		return said[i], true, nil
	}
	return wire.PodStatus{}, false, err
}

// forget tells the server to drop its memory of a pod. The server answers from this memory when the plugin has
// no answer. A server without a route for this request has no such memory.
func (c *client) forget(ctx context.Context, uid string) error {
	err := c.ask(ctx, forgetTimeout, http.MethodPost, wire.PathUpdateCache, uid, nil)
	var answer *answerError
	if errors.As(err, &answer) && (answer.code == http.StatusNotFound || answer.code == http.StatusMethodNotAllowed || answer.code == http.StatusNotImplemented) {
		return nil
	}
	return err
}

// create creates the job of a pod. If the answer names no job or another pod, create returns an error, and a job
// may exist.
func (c *client) create(ctx context.Context, pod wire.Create) (wire.Created, error) {
	var raw json.RawMessage
	if err := c.ask(ctx, createTimeout, http.MethodPost, wire.PathCreate, pod, &raw); err != nil {
		return wire.Created{}, err
	}
	list, made := raw, []wire.Created{}
	if !bytes.HasPrefix(raw, []byte{'['}) { // the answer is an object, or a list with one
		list = slices.Concat([]byte{'['}, raw, []byte{']'})
	}
	if err := json.Unmarshal(list, &made); err != nil || len(made) == 0 || made[0].PodUID == "" && made[0].JobID == "" {
		return wire.Created{}, fmt.Errorf("interLink %s: the answer names no job: %s", wire.PathCreate, words(string(raw)))
	}
	if uid := made[0].PodUID; uid != "" && uid != string(pod.Pod.UID) {
		return wire.Created{}, fmt.Errorf("the plugin has made a job for the pod with the UID %q, and was asked for %q", words(uid), pod.Pod.UID)
	}
	return made[0], nil
}

// remove stops a pod.
func (c *client) remove(ctx context.Context, pod *corev1.Pod) error {
	return c.ask(ctx, requestTimeout, http.MethodDelete, wire.PathDelete, pod, nil)
}

// logs returns the log of a container, as the plugin sends it.
func (c *client) logs(ctx context.Context, o wire.Logs) (io.ReadCloser, error) {
	resp, err := c.do(ctx, http.MethodGet, wire.PathLogs, o)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// ping checks whether the plugin of the server answers. An answer without resources counts, too.
func (c *client) ping(ctx context.Context) (wire.Ping, error) {
	var ping wire.Ping
	data, err := c.read(ctx, requestTimeout, http.MethodPost, wire.PathPing, nil)
	if err != nil {
		return ping, err
	}
	switch text := string(bytes.TrimSpace(data)); {
	case text == "" || text == "null" || text == "0" || strings.HasPrefix(text, "["):
		return ping, nil // an empty list of statuses, or the answer of an older server
	case !strings.HasPrefix(text, "{"): // for example the 503 of a server whose plugin stopped in the middle of an answer, or the page of a proxy
		return ping, fmt.Errorf("interLink %s: the answer does not follow the protocol: %s", wire.PathPing, words(text))
	}
	if err := json.Unmarshal(data, &ping); err != nil {
		return wire.Ping{}, fmt.Errorf("interLink %s: the answer does not follow the protocol: %w", wire.PathPing, err)
	}
	return ping, nil
}

// state returns a text that changes when a file is replaced.
func (t TLS) state() (all string) {
	for _, file := range []string{t.CAFile, t.CertFile, t.KeyFile} {
		if info, err := os.Stat(file); err == nil {
			all += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), " ")
		}
	}
	return all
}

// files returns the files for a connection. It accepts an authority in DER, as interLink's own virtual kubelet does.
func (t TLS) files() config.TLSFiles {
	return config.TLSFiles{CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile}
}
