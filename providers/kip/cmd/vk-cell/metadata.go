// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// metadataIP is the address of a cloud's metadata service for machines.
const metadataIP = "169.254.169.254"

// metadataMark marks the connections of this program to the metadata service. A pod cannot set a mark, because it has neither CAP_NET_ADMIN nor CAP_NET_RAW.
const metadataMark = 0x766b

// metadataIPv6 are the addresses of the metadata services of EC2 and OpenStack by IPv6. The agent does not use them.
var metadataIPv6 = []string{"fd00:ec2::254", "fe80::a9fe:a9fe"}

// hasIPv6 reports whether the kernel has IPv6.
func hasIPv6() bool {
	_, err := os.Stat("/proc/net/if_inet6")
	return err == nil
}

// hideMetadata keeps pods from the metadata service: the machine routes only marked connections there.
func hideMetadata() error {
	err := runIP("rule", "add", "pref", "10", "to", metadataIP, "fwmark", fmt.Sprint(metadataMark), "lookup", "main")
	for _, at := range metadataIPv6 {
		if err := runIP("-6", "rule", "add", "pref", "11", "to", at, "type", "prohibit"); err != nil && hasIPv6() {
			return err
		}
	}
	return errors.Join(err, runIP("rule", "add", "pref", "11", "to", metadataIP, "type", "prohibit"))
}

// metadata is the metadata service of a cloud, with the paths of EC2. A metadata belongs to one goroutine.
type metadata struct {
	url   string
	http  http.Client
	token string // of EC2's second version; "": no token yet, or the service issues none
}

func newMetadata(url string) *metadata {
	dialer := &net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		return errors.Join(c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, metadataMark) }), err)
	}}
	return &metadata{url: url, http: http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConns: 1}}}
}

// get reads a page. It gets a token first if the service issues tokens, and a new one after the service refused a token. False means that there is no page.
func (m *metadata) get(ctx context.Context, path string) (page []byte, found bool, err error) {
	if m.token == "" {
		token, status, err := m.request(ctx, http.MethodPut, "/latest/api/token", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", tokenSeconds)
		if err == nil && status == http.StatusOK {
			m.token = string(token)
		}
	}
	page, status, err := m.request(ctx, http.MethodGet, path, "X-Aws-Ec2-Metadata-Token", m.token)
	switch {
	case err != nil || status == http.StatusOK || status == http.StatusNotFound:
		return page, status == http.StatusOK, err
	case status == http.StatusUnauthorized:
		m.token = ""
	}
	return nil, false, fmt.Errorf("%s: the metadata service answers %d %s", path, status, http.StatusText(status))
}

// tokenSeconds is the validity of a token: the maximum of EC2.
const tokenSeconds = "21600"

func (m *metadata) request(ctx context.Context, method, path, header, value string) (body []byte, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, m.url+path, nil)
	if err != nil {
		return nil, 0, err
	}
	if value != "" {
		r.Header.Set(header, value)
	}
	answer, err := m.http.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // to the end, so that the connection can be used again
	return body, answer.StatusCode, err
}

// spotEvery is the interval of checks for EC2's notice, as EC2 recommends. The notice comes two minutes before the end of the machine.
const spotEvery = 5 * time.Second

// spotNotice is the page /latest/meta-data/spot/instance-action. It is missing before EC2 decides to take the machine. Source: "Spot Instance interruption
// notices", Amazon EC2 User Guide, 2026-11-28. A rebalance recommendation is another page: it announces a risk, and EC2 may never take the machine.
type spotNotice struct {
	Action string    `json:"action"` // terminate, stop or hibernate
	Time   time.Time `json:"time"`
}

// watchSpot calls tell when EC2 gives notice of the machine's interruption. It returns afterwards, or when ctx ends.
func (m *metadata) watchSpot(ctx context.Context, every time.Duration, tell func(why string)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	complained := false
	for {
		var notice spotNotice
		page, found, err := m.get(ctx, "/latest/meta-data/spot/instance-action")
		if found {
			err = json.Unmarshal(page, &notice)
		}
		switch {
		case err == nil && notice.Action != "":
			tell(fmt.Sprintf("EC2 will %s it at %s", notice.Action, notice.Time.UTC().Format(time.RFC3339)))
			return
		case err != nil && ctx.Err() == nil && !complained:
			complained = true
			fmt.Fprintf(os.Stderr, "vk-cell: read the notice of EC2, again every %s: %v\n", every, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
