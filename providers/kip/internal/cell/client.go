// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Client is the node's side for one machine. It keeps a connection for idleTime after a request, and another connection while Watch runs.
type Client struct {
	authority *Authority
	token     string
	address   string
	known     *http.Client // connects only to a machine with its certificate

	images  podjob.PullFunc
	allowed func(image string) bool

	seen atomic.Pointer[x509.Certificate] // the last certificate of the machine
}

// Time limits of a client.
const (
	callTime    = 30 * time.Second // for a request with an immediate answer
	connectTime = 10 * time.Second
	idleTime    = 30 * time.Second
	beatEvery   = 2 * time.Minute
	beatTime    = time.Minute // for the answer to a beat
)

// Client returns a client for the machine with a token. The address is a host with a port.
func (a *Authority) Client(token, address string) *Client {
	c := &Client{authority: a, token: token, address: address}
	c.known = c.newHTTPClient(c.isMachine)
	return c
}

// newHTTPClient returns an HTTP client over TLS. The server must pass check.
func (c *Client) newHTTPClient(check func(tls.ConnectionState) error) *http.Client {
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: machineName(c.token),
		InsecureSkipVerify: true, //nolint:gosec // check does it: a machine begins without a certificate of its authority
		VerifyConnection:   check,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return c.authority.nodeCertificate()
		},
	}
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: connectTime}, Config: config}
	return &http.Client{Transport: &http.Transport{
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, connectTime)
			defer cancel()
			return dialer.DialContext(ctx, network, c.address)
		},
		IdleConnTimeout: idleTime, MaxIdleConnsPerHost: 1, DisableCompression: true,
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // a machine may name any server that the node reaches
}

// isMachine checks by certificate that the server is the machine.
func (c *Client) isMachine(s tls.ConnectionState) error {
	roots := x509.NewCertPool()
	roots.AddCert(c.authority.cert)
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: machineName(c.token), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStranger, err)
	}
	c.seen.Store(s.PeerCertificates[0])
	return nil
}

// renewCertificate signs the machine's key again after half of the certificate's validity.
func (c *Client) renewCertificate(ctx context.Context) error {
	old := c.seen.Load()
	if old == nil || time.Until(old.NotAfter) > machineLife/2 {
		return nil
	}
	var answer joinAnswer
	if err := c.callMachine(ctx, c.known, http.MethodPost, pathJoin, joinRequest{Now: time.Now()}, &answer); err != nil {
		return err
	}
	cert, err := c.authority.signRequest(c.token, answer.Request, old.RawSubjectPublicKeyInfo)
	if err != nil {
		return err
	}
	if err := c.callMachine(ctx, c.known, http.MethodPost, pathSigned, signed{cert.Raw}, nil); err != nil {
		return err
	}
	c.seen.Store(cert)
	return nil
}

// Close closes idle connections.
func (c *Client) Close() { c.known.CloseIdleConnections() }

// Join establishes trust between the node and the machine. The node signs a machine once. SignedBefore is the fingerprint of the key that the node signed
// earlier, or "". Record saves the fingerprint of a new key before the machine gets its certificate. Join changes nothing if the machine has a valid
// certificate, and signs the key of an expired certificate again.
func (c *Client) Join(ctx context.Context, signedBefore string, record func(ctx context.Context, fingerprint string) error) error {
	var key []byte
	var is error
	first := c.newHTTPClient(func(s tls.ConnectionState) error {
		if is = c.isMachine(s); is == nil {
			return nil
		}
		key = s.PeerCertificates[0].RawSubjectPublicKeyInfo // the proof identifies its owner
		return nil
	})
	first.Transport.(*http.Transport).MaxConnsPerHost = 1 // the key belongs to one connection
	defer first.CloseIdleConnections()
	nonce := make([]byte, 32)
	_, _ = rand.Read(nonce) // it never fails
	var answer joinAnswer
	if err := c.callMachine(ctx, first, http.MethodPost, pathJoin, joinRequest{nonce, time.Now()}, &answer); err != nil {
		return err
	}
	if is == nil {
		return nil
	}
	print := fingerprint(key)
	switch {
	case signedBefore == print: // the certificate has expired or did not arrive; the connection proves that the machine has the key
	case signedBefore != "":
		return fmt.Errorf("%w: another key was signed for the machine before", ErrStranger)
	case !hmac.Equal(answer.Proof, proveSecret(c.authority.secretOf(c.token), nonce, key)):
		return fmt.Errorf("%w: it does not know the secret of the machine", ErrStranger)
	}
	cert, err := c.authority.signRequest(c.token, answer.Request, key)
	if err != nil {
		return err
	}
	if signedBefore == "" {
		if err := record(ctx, print); err != nil {
			return fmt.Errorf("record the key of the machine: %w", err)
		}
	}
	return c.callMachine(ctx, first, http.MethodPost, pathSigned, signed{cert.Raw}, nil)
}

// Give gives the machine its pod. Giving the same pod again is no error. It returns ErrTaken if the machine has another pod.
func (c *Client) Give(ctx context.Context, b podjob.Bundle) error {
	return c.callMachine(ctx, c.known, http.MethodPost, pathPod, b, nil)
}

// Renew sends new objects, tokens and logins for the machine's pod.
func (c *Client) Renew(ctx context.Context, b podjob.Bundle) error {
	return c.callMachine(ctx, c.known, http.MethodPut, pathPod, b, nil)
}

// Stop stops the machine's pod. The machine itself keeps running.
func (c *Client) Stop(ctx context.Context, grace time.Duration) error {
	return c.callMachine(ctx, c.known, http.MethodPost, pathStop, stopOrder{GraceSeconds: int64(grace / time.Second)}, nil)
}

// Stats returns the resource usage of the pod.
func (c *Client) Stats(ctx context.Context) (s statsv1alpha1.PodStats, err error) {
	return s, c.callMachine(ctx, c.known, http.MethodGet, pathStats, nil, &s)
}

// Logs returns the log of a container.
func (c *Client) Logs(ctx context.Context, container string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	text, err := json.Marshal(opts)
	if err != nil {
		return nil, err
	}
	answer, err := c.sendRequest(ctx, c.known, http.MethodGet, pathLogs+"?"+url.Values{"container": {container}, "options": {string(text)}}.Encode(), nil, false)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// Stream runs the request req in the pod: see podjob.Stream.
func (c *Client) Stream(ctx context.Context, req podjob.Request, e podjob.Ends) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := c.openStream(ctx, pathStream)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	err = podjob.Stream(ctx, conn, conn, req, e)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Watch calls changed with the machine's state, now and at each change, until ctx or the connection ends. The end of ctx is no error.
func (c *Client) Watch(ctx context.Context, changed func(State)) error {
	conn, err := c.openStream(ctx, pathWatch)
	if err != nil {
		return err
	}
	if err := c.renewCertificate(ctx); err != nil {
		return errors.Join(fmt.Errorf("renew the certificate of the machine: %w", err), conn.Close())
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	silent := time.AfterFunc(beatEvery+beatTime, func() { _ = conn.Close() })
	defer silent.Stop()
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { c.sendBeats(ctx, conn) })
	defer func() {
		cancel()
		_ = conn.Close()
		beside.Wait()
	}()
	asked := map[string]bool{}                 // wants of the last state
	room := make(chan struct{}, maxImagesSent) // holds a value for each image in transfer
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxAnswer)
	for {
		err := io.EOF
		if lines.Scan() {
			err = nil
		} else if lines.Err() != nil {
			err = lines.Err()
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !silent.Stop():
			return fmt.Errorf("watch the machine: it has said nothing for %s", beatEvery+beatTime)
		case err != nil:
			return fmt.Errorf("watch the machine: %w", err)
		}
		silent.Reset(beatEvery + beatTime)
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var s State
		if err := json.Unmarshal(line, &s); err != nil {
			return fmt.Errorf("read the state of the machine: %w", err)
		}
		wanted := map[string]bool{}
		for _, w := range s.Wants {
			if wanted[w.ID] = asked[w.ID]; wanted[w.ID] {
				continue
			}
			select {
			case room <- struct{}{}:
				wanted[w.ID] = true
				beside.Go(func() {
					defer func() { <-room }()
					c.sendImage(ctx, w)
				})
			default: // the next state retries the want, and each finished image causes a state
			}
		}
		asked = wanted
		changed(s)
	}
}

// sendBeats sends a byte every beatEvery, so that the machine knows that the node needs it.
func (c *Client) sendBeats(ctx context.Context, conn io.Writer) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if _, err := conn.Write([]byte{'\n'}); err != nil {
				return // the reader of the connection has the error
			}
			_ = c.renewCertificate(ctx) // later beats retry, for days
		}
	}
}

// openStream turns a request into a two-way stream.
func (c *Client) openStream(ctx context.Context, path string) (io.ReadWriteCloser, error) {
	answer, err := c.sendRequest(ctx, c.known, http.MethodPost, path, nil, true)
	if err != nil {
		return nil, err
	}
	conn, ok := answer.Body.(io.ReadWriteCloser)
	if !ok || answer.StatusCode != http.StatusSwitchingProtocols {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s: the machine answers %s, want a stream", path, answer.Status)
	}
	return conn, nil
}

// callMachine sends a request with an immediate answer, and decodes the answer into out unless out is nil.
func (c *Client) callMachine(ctx context.Context, over *http.Client, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer, err := c.sendRequest(ctx, over, method, path, in, false)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	} else {
		err = json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(out)
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	}
	if err != nil {
		return fmt.Errorf("read the answer of the machine to %s: %w", path, err)
	}
	return nil
}

// maxAnswer limits the size of an answer, because a hostile machine may send anything.
const maxAnswer = 4 << 20

// maxImagesSent limits the images in transfer to a machine, for the same reason. A pod pulls fewer images.
const maxImagesSent = 64

// sendRequest sends a request. It maps a refusal to an error of the matching kind.
func (c *Client) sendRequest(ctx context.Context, over *http.Client, method, path string, in any, upgrade bool) (*http.Response, error) {
	body, ok := in.(io.Reader)
	if in != nil && !ok {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, "https://"+machineName(c.token)+path, body)
	if err != nil {
		return nil, err
	}
	if upgrade {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", upgradeTo)
	}
	answer, err := over.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask the machine at %s: %w", c.address, errors.Unwrap(err)) // the outer error only repeats the URL
	}
	if answer.StatusCode == http.StatusSwitchingProtocols && !upgrade { // reads from a stream do not end with ctx
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s: the machine answers %s, want no stream", path, answer.Status)
	}
	if answer.StatusCode < http.StatusMultipleChoices {
		return answer, nil
	}
	defer answer.Body.Close()
	var said refusal
	if json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&said) != nil || said.Message == "" {
		said.Message = "it answers " + answer.Status
	}
	switch answer.StatusCode {
	case http.StatusConflict:
		return nil, fmt.Errorf("%w: %s", ErrTaken, said.Message)
	case http.StatusPreconditionRequired:
		return nil, fmt.Errorf("%w: %s", ErrNoPod, said.Message)
	case http.StatusBadRequest:
		return nil, errdefs.InvalidInput(said.Message)
	case http.StatusNotFound:
		return nil, errdefs.NotFound(said.Message)
	}
	return nil, answerError(said.Message)
}

// answerError is an error that an agent answered, without a kind of its own.
type answerError string

// Error implements error.
func (e answerError) Error() string { return string(e) }

// IsAnswer reports whether the agent of a machine answered a request with this error. Any other error says nothing about the machine, because the network
// of the node may be down.
func IsAnswer(err error) bool {
	var answer answerError
	return errors.As(err, &answer) || errdefs.IsNotFound(err) || errdefs.IsInvalidInput(err)
}

// ServeImages makes Watch send wanted images that allowed permits. Pull gets the images. Without ServeImages, a machine gets no images. A pod may control
// its machine: permit only the images of the pod.
func (c *Client) ServeImages(pull podjob.PullFunc, allowed func(image string) bool) {
	c.images, c.allowed = pull, allowed
}

// sendImage sends an image to the machine, or the reason for a refusal.
func (c *Client) sendImage(ctx context.Context, w Want) {
	var head imageHead
	var files io.ReadCloser
	err := status.Errorf(codes.PermissionDenied, "image %s does not belong to the pod", w.Image)
	if c.images != nil && c.allowed(w.Image) {
		head.Image, files, err = c.images(ctx, w.Image, w.Login)
	}
	if err != nil {
		head.Code, head.Error = status.Code(err), status.Convert(err).Message()
	}
	line, err := json.Marshal(head)
	if err != nil {
		return // the value has only strings
	}
	out, in := io.Pipe()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, err := in.Write(append(line, '\n'))
		if err == nil && files != nil {
			_, err = io.Copy(in, files)
		}
		_ = in.CloseWithError(err)
	}()
	defer func() {
		_ = out.CloseWithError(errors.New("the machine reads no more"))
		<-sent
		if files != nil {
			_ = files.Close()
		}
	}()
	answer, err := c.sendRequest(ctx, c.known, http.MethodPost, pathImage+w.ID, out, false)
	if err == nil { // otherwise the machine has stopped waiting, or the watch ends, too
		_ = answer.Body.Close()
	}
}
