// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// version is the version of the imitated kubelet, which servers see in the User-Agent.
const version = "1.37"

// newTransports returns the transports for negotiated HTTP versions, and for HTTP/2 without TLS. They use no proxy of the node, verify no
// certificate, and keep no connection.
func newTransports(d dialer) (plain, h2c *http.Transport) {
	plain = &http.Transport{
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2:  true,
		DisableKeepAlives:  true,
		DisableCompression: true,
		DialContext:        d.dialTarget,
	}
	h2c = plain.Clone()
	h2c.Protocols = new(http.Protocols)
	h2c.Protocols.SetUnencryptedHTTP2(true)
	return plain, h2c
}

func (p *Prober) askHTTP(ctx context.Context, action *corev1.HTTPGetAction, t Target, timeout time.Duration) (outcome, string, error) {
	req, err := newRequest(ctx, action, t, "kube-probe/"+version)
	if err != nil {
		return unknown, "", err
	}
	client := http.Client{Transport: p.http, Timeout: timeout, CheckRedirect: sameHost}
	if action.Protocol != nil && *action.Protocol == corev1.HTTPProtocolHTTP2 {
		client.Transport = p.h2c
	}
	resp, err := client.Do(req)
	if err != nil {
		return failure, err.Error(), nil
	}
	defer resp.Body.Close()
	body := io.LimitReader(resp.Body, readLimit)
	switch code := resp.StatusCode; {
	case code >= 300 && code < 400:
		text, err := io.ReadAll(body)
		if err != nil {
			return failure, "", err
		}
		return warning, "Probe terminated redirects, Response body: " + string(text), nil
	default:
		if _, err := io.Copy(io.Discard, body); err != nil {
			return failure, "", err
		}
		if code >= 200 && code < 300 {
			return success, "", nil
		}
		// Omit the body, which may be only for the node.
		return failure, fmt.Sprintf("HTTP probe failed with statuscode: %d", code), nil
	}
}

// sameHost follows redirects to the same host, on any port. A redirect to another host is returned as the response.
func sameHost(req *http.Request, via []*http.Request) error {
	if req.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

// newRequest makes the request of a probe or hook.
func newRequest(ctx context.Context, action *corev1.HTTPGetAction, t Target, agent string) (*http.Request, error) {
	port, err := portOf(action.Port, t.Container)
	if err != nil {
		return nil, err
	}
	host := action.Host
	if host == "" {
		host = addressOf(t)
	}
	scheme := strings.ToLower(string(action.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	target, err := url.Parse(action.Path)
	if err != nil {
		target = &url.URL{Path: action.Path} // the path is accepted unchanged, because it is too late to refuse it
	}
	target.Scheme, target.Host = scheme, net.JoinHostPort(host, strconv.Itoa(port))
	req, err := http.NewRequestWithContext(withTarget(ctx, t), http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	setHeaders(req, action.HTTPHeaders, agent)
	return req, nil
}

// setHeaders sets the headers of the pod. An empty Accept means none.
func setHeaders(req *http.Request, headers []corev1.HTTPHeader, agent string) {
	for _, h := range headers {
		req.Header.Add(h.Name, h.Value)
	}
	if _, ok := req.Header["User-Agent"]; !ok {
		req.Header.Set("User-Agent", agent)
	}
	if _, ok := req.Header["Accept"]; !ok {
		req.Header.Set("Accept", "*/*")
	} else if req.Header.Get("Accept") == "" {
		req.Header.Del("Accept")
	}
	req.Host = req.Header.Get("Host")
}

// addressOf returns the address for a probe without a host.
func addressOf(t Target) string {
	if len(t.PodIPs) == 0 {
		return ""
	}
	return t.PodIPs[0]
}

// portOf finds a port by number or name.
func portOf(port intstr.IntOrString, c *corev1.Container) (int, error) {
	number := port.IntValue()
	if port.Type == intstr.String {
		number = 0
		for i := range c.Ports {
			if c.Ports[i].Name == port.StrVal {
				number = int(c.Ports[i].ContainerPort)
			}
		}
		if number == 0 {
			return 0, fmt.Errorf("port %q not found", port.StrVal)
		}
	}
	if number < 1 || number > 65535 {
		return 0, fmt.Errorf("invalid port number: %v", number)
	}
	return number, nil
}
