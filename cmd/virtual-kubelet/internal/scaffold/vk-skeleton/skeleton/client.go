// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// requestTimeout bounds every request, and the opening of a session. If the service has no sessions, a request lasts as long as its command, so use
// the caller's context instead.
const requestTimeout = 30 * time.Second

// client sends requests to the service. An error response is returned as an *apiError.
//
// FILL(client): write the requests of your service, and map its errors in apiError. These are the routes of package toy.
type client struct {
	endpoint string
	token    config.Secret
	http     *http.Client
}

func newClient(c Config) *client {
	return &client{endpoint: strings.TrimSuffix(c.Endpoint, "/"), token: c.Token, http: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}}
}

// group is a group in a response of the service.
type group struct {
	Name       string            `json:"name"`
	Tags       map[string]string `json:"tags"`
	Created    time.Time         `json:"created"`
	Address    string            `json:"address"` // "": it has none yet
	Containers []container       `json:"containers"`
}

// container is a container of a group.
type container struct {
	Name     string `json:"name"`
	Image    string `json:"image"`
	State    string `json:"state"`
	Restarts int32  `json:"restarts"`
	Run      run    `json:"run"`
	Last     *run   `json:"last"` // the previous run; nil if there was none
}

// run is one run of a container.
type run struct {
	ID       string    `json:"id"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	ExitCode *int32    `json:"exitCode"` // nil: unknown
}

// list returns all groups with these tags, from all pages.
func (c *client) list(ctx context.Context, tags map[string]string) (all []group, err error) {
	query := url.Values{}
	for key, value := range tags {
		query.Add("tag", key+"="+value)
	}
	for {
		var page struct {
			Groups []group `json:"groups"`
			Next   string  `json:"next"`
		}
		if err := c.askService(ctx, "GET", "/v1/groups", query, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Groups...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("after", page.Next)
	}
}

func (c *client) createGroup(ctx context.Context, name string, spec groupSpec) (made group, err error) {
	return made, c.askService(ctx, "PUT", "/v1/groups/"+name, nil, spec, &made)
}

func (c *client) get(ctx context.Context, name string) (found group, err error) {
	return found, c.askService(ctx, "GET", "/v1/groups/"+name, nil, nil, &found)
}

func (c *client) stop(ctx context.Context, name string, grace time.Duration) error {
	query := url.Values{"grace": {strconv.FormatFloat(grace.Seconds(), 'f', -1, 64)}}
	_, err := c.callService(ctx, "DELETE", "/v1/groups/"+name, query, nil)
	return err
}

// readLog returns the lines of a run since a time, each with its timestamp.
func (c *client) readLog(ctx context.Context, name, container string, previous bool, since time.Time) (string, error) {
	query := url.Values{"previous": {strconv.FormatBool(previous)}}
	if !since.IsZero() {
		query.Set("since", since.Format(time.RFC3339Nano))
	}
	text, err := c.callService(ctx, "GET", "/v1/groups/"+name+"/containers/"+container+"/log", query, nil)
	return string(text), err
}

// askService sends in, unless it is nil, and decodes the response into out.
func (c *client) askService(ctx context.Context, method, path string, query url.Values, in, out any) error {
	text, err := c.callService(ctx, method, path, query, in)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s %s: the answer is not as expected: %w", method, path, err)
	}
	return nil
}

// callService sends a request and returns the body of the response.
func (c *client) callService(ctx context.Context, method, path string, query url.Values, in any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.endpoint+path+"?"+query.Encode(), body)
	if err != nil {
		return nil, err
	}
	r.Header = c.requestHeader(ctx)
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err // the error contains the method and the URL
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: %w", method, path, errorOf(answer))
	}
	return io.ReadAll(answer.Body)
}

func (c *client) requestHeader(ctx context.Context) http.Header {
	h := http.Header{}
	if c.token.IsSet() {
		h.Set("Authorization", "Bearer "+c.token.Value(ctx)) // the current value, because a file may have changed
	}
	return h
}

// apiError is an error response.
type apiError struct {
	status  int
	message string
}

// Error implements error.
func (e *apiError) Error() string { return fmt.Sprintf("%d: %s", e.status, e.message) }

// NotFound gives the error the kind not-found: see package errdefs.
func (e *apiError) NotFound() bool { return e.status == http.StatusNotFound }

// InvalidInput gives the error the kind invalid-input, which makes the pod fail at its creation, because a retry cannot succeed.
func (e *apiError) InvalidInput() bool { return e.status == http.StatusBadRequest }

// errorOf returns the error of a response. It has the retry time, if the service sends one.
func errorOf(answer *http.Response) error {
	var body struct {
		Error string `json:"error"`
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // it is for people
	if json.Unmarshal(text, &body) != nil || body.Error == "" {
		body.Error = answer.Status
	}
	var err error = &apiError{answer.StatusCode, body.Error}
	if seconds, no := strconv.Atoi(answer.Header.Get("Retry-After")); no == nil {
		err = errdefs.RetryAfter(err, time.Duration(seconds)*time.Second)
	}
	return err
}

// isConflict reports whether the group exists from another request.
func isConflict(err error) bool {
	var said *apiError
	return errors.As(err, &said) && said.status == http.StatusConflict
}

// isRefusal reports whether the request certainly had no effect. After a network error or a server error, that is unknown.
func isRefusal(err error) bool {
	var said *apiError
	return errors.As(err, &said) && said.status < http.StatusInternalServerError && said.status != http.StatusRequestTimeout
}

// execCommand runs a command in a container over a websocket, and returns its exit code. The first byte of each message is its kind.
func (c *client) execCommand(ctx context.Context, name, container string, command []string, attach api.AttachIO) (code int, err error) {
	query := url.Values{"command": command, "stdin": {strconv.FormatBool(attach.Stdin() != nil)}, "tty": {strconv.FormatBool(attach.TTY())}}
	address := "ws" + strings.TrimPrefix(c.endpoint, "http") + "/v1/groups/" + name + "/containers/" + container + "/exec?" + query.Encode()
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: requestTimeout}
	conn, answer, err := dialer.DialContext(ctx, address, c.requestHeader(ctx))
	if answer != nil {
		defer answer.Body.Close()
	}
	if err != nil {
		if answer != nil {
			err = errorOf(answer)
		}
		return 0, fmt.Errorf("open a session: %w", err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	s := &session{conn: conn}
	if attach.Stdin() != nil {
		go s.sendInput(attach.Stdin()) // ends with the input, or with the first write after the end of conn
	}
	if attach.TTY() {
		go s.sendSizes(ctx, attach.Resize())
	}
	for {
		_, message, err := conn.ReadMessage()
		if err != nil || len(message) == 0 {
			return 0, fmt.Errorf("the session ended before the command: %w", errors.Join(err, ctx.Err()))
		}
		switch message[0] {
		case 'o':
			writeStream(attach.Stdout(), message[1:])
		case 'e':
			writeStream(attach.Stderr(), message[1:])
		case 'x':
			return strconv.Atoi(string(message[1:]))
		}
	}
}

// writeStream writes to a stream, if the caller requested it. When the caller disconnects, its context ends the session.
func writeStream(w io.Writer, b []byte) {
	if w != nil {
		_, _ = w.Write(b)
	}
}

// session sends messages one at a time.
type session struct {
	mu   sync.Mutex
	conn *websocket.Conn // guarded by mu; one goroutine reads without it
}

func (s *session) sendMessage(kind byte, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn.WriteMessage(websocket.BinaryMessage, append([]byte{kind}, body...))
}

func (s *session) sendInput(in io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := in.Read(buffer)
		if n > 0 && s.sendMessage('i', buffer[:n]) != nil {
			return
		}
		if err != nil {
			_ = s.sendMessage('i', nil) // the end of the input, if the session continues
			return
		}
	}
}

func (s *session) sendSizes(ctx context.Context, sizes <-chan api.TermSize) {
	for {
		select {
		case size, more := <-sizes:
			if !more || s.sendMessage('s', fmt.Appendf(nil, `{"rows":%d,"columns":%d}`, size.Height, size.Width)) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
