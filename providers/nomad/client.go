// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// client sends HTTP requests to an agent.
type client struct {
	address   *url.URL
	region    string
	namespace string
	token     config.Secret
	http      *http.Client
	tls       config.TLSFiles
	proxy     func(*http.Request) (*url.URL, error) // nil: none
}

// tries bounds the attempts of a repeatable request, and firstWait is the pause after the first.
const (
	tries     = 3
	firstWait = 100 * time.Millisecond
	longWait  = 5 * time.Second // a longer Retry-After is left to the node
)

// requestTimeout bounds one request other than a stream.
const requestTimeout = 30 * time.Second

// errNoLeader is the error if the servers have no leader.
var errNoLeader = errors.New("the servers of Nomad have no leader")

func newClient(c Config) (*client, error) {
	address, err := url.Parse(c.Address)
	if err != nil {
		return nil, fmt.Errorf("nomad provider: address: %w", err)
	}
	proxy := http.ProxyFromEnvironment
	if c.TLS != (TLS{}) {
		proxy = nil // connections through a proxy would not use these files
	}
	return &client{
		proxy: proxy, address: address, region: c.Region, namespace: c.Namespace, token: c.Token, tls: config.TLSFiles(c.TLS),
		http: &http.Client{
			Transport: &http.Transport{
				Proxy: proxy, DialTLSContext: config.TLSFiles(c.TLS).DialTLS, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the client would follow a redirect with the token
		},
	}, nil
}

// query are the parameters of a request, besides the common ones.
type query = url.Values

// url returns the URL of a path.
func (c *client) url(path string, q query) *url.URL {
	values := url.Values{"namespace": {c.namespace}}
	if c.region != "" {
		values.Set("region", c.region)
	}
	maps.Copy(values, q)
	u := *c.address
	u.RawPath = ""
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	u.RawQuery = values.Encode()
	return &u
}

// header returns a header with the current token.
func (c *client) header(ctx context.Context) http.Header {
	h := http.Header{}
	if token := c.token.Value(ctx); token != "" {
		h.Set("X-Nomad-Token", token)
	}
	return h
}

// open sends a request once, and returns the answer if it is a success. The caller closes its body.
func (c *client) open(ctx context.Context, method, path string, q query, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url(path, q).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = c.header(ctx)
	answer, err := c.http.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) { // without the query, which may have a command
			err = failed.Err
		}
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if err := refused(method+" "+path, answer); err != nil {
		defer answer.Body.Close()
		return nil, err
	}
	return answer, nil
}

// call sends a repeatable request, and decodes the answer into out unless out is nil. It returns the index of the answer.
func (c *client) call(ctx context.Context, method, path string, q query, in, out any) (index uint64, err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return 0, fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for try, next := 1, firstWait; ; try, next = try+1, 3*next {
		index, err = c.once(ctx, method, path, q, body, out)
		asked, _ := errdefs.RetryAfterOf(err)
		if err == nil || try == tries || !passes(err) || asked > longWait {
			return index, err
		}
		next = max(next, asked)
		if sleep(ctx, next); ctx.Err() != nil {
			return index, err
		}
	}
}

// passes reports whether a retry may succeed.
func passes(err error) bool {
	var answered *answerError
	if !errors.As(err, &answered) {
		return true // no answer
	}
	return answered.code == http.StatusTooManyRequests || answered.code == http.StatusBadGateway || answered.code == http.StatusServiceUnavailable
}

// final reports whether nothing was done and a retry would fail too: the token lacks the right, or the request is wrong. With other
// errors, an earlier try without an answer may have taken effect.
func final(err error) bool {
	var answered *answerError
	return errdefs.IsInvalidInput(err) || errors.As(err, &answered) && answered.forbidden()
}

func (c *client) once(ctx context.Context, method, path string, q query, body []byte, out any) (uint64, error) {
	answer, err := c.open(ctx, method, path, q, body)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err == nil && out != nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		return 0, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	if answer.Header.Get("X-Nomad-KnownLeader") == "false" {
		return 0, fmt.Errorf("%s %s: %w", method, path, errNoLeader)
	}
	index, _ := strconv.ParseUint(answer.Header.Get("X-Nomad-Index"), 10, 64)
	return index, nil
}

const (
	shortestPause = 200 * time.Millisecond
	longestPause  = 5 * time.Second
)

// newPause returns the pauses between tries. They grow, and have a random part, so that the nodes of a cluster do not retry at the
// same time.
func newPause() wait.Backoff {
	return wait.Backoff{Duration: shortestPause, Factor: 2, Jitter: 0.5, Steps: math.MaxInt, Cap: longestPause}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// answerError is an unsuccessful answer.
type answerError struct {
	what    string
	code    int
	text    string
	foreign bool // the answer comes from a proxy, not from Nomad, and says nothing about jobs
}

func (e *answerError) Error() string {
	if e.foreign {
		return fmt.Sprintf("%s: the server at the address of Nomad answers %d, and is not Nomad: %s", e.what, e.code, e.text)
	}
	return fmt.Sprintf("%s: Nomad answers %d: %s", e.what, e.code, e.text)
}

// missing matches Nomad's texts about objects that it lacks. A proxy answers 404 for other reasons, and with
// other texts.
var missing = regexp.MustCompile(`(^|: )((job|variable|alloc|allocation) not found|Unknown allocation ".*"|task ".*" not started yet.*|log entry for task .* not found)$`)

// NotFound reports a 404 of Nomad itself about a missing object.
func (e *answerError) NotFound() bool {
	return e.code == http.StatusNotFound && !e.foreign && missing.MatchString(e.text)
}

// InvalidInput reports a 400 of Nomad itself.
func (e *answerError) InvalidInput() bool { return e.code == http.StatusBadRequest && !e.foreign }

// forbidden reports whether the token lacks the rights.
func (e *answerError) forbidden() bool { return e.code == http.StatusForbidden && !e.foreign }

// refused returns an error unless the answer is a success.
func refused(what string, answer *http.Response) error {
	kind := answer.Header.Get("Content-Type")
	html := strings.HasPrefix(kind, "text/html")
	success := answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusNoContent // the latter when a Variable was removed
	if success && !html {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	// Nomad writes errors as text. A 400 without a content type comes from a listener that expects TLS, and has
	// no relation to the request.
	foreign := html || kind == "" && answer.StatusCode == http.StatusBadRequest
	err := error(&answerError{what: what, code: answer.StatusCode, text: said(text), foreign: foreign})
	if wait := config.RetryAfter(answer.Header); wait > 0 {
		err = errdefs.RetryAfter(err, wait)
	}
	return err
}

// said returns an error text of Nomad as one line.
func said(text []byte) string {
	if line := strings.Join(strings.Fields(string(text)), " "); line != "" {
		return line
	}
	return "nothing more"
}
