// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Path prefixes and versions of the pod API, in Kubernetes and in API 2.0 of CCI.
const (
	coreVersion, corePrefix = "v1", "/api/v1/"
	cciVersion, cciPrefix   = "cci/v2", "/apis/cci/v2/"
)

// pathOfAPI is the path of the Service whose UID identifies a cluster.
const pathOfAPI = corePrefix + "namespaces/default/services/kubernetes"

// withoutServices answers requests for this Service with not-found, because CCI has no Services, and the policy
// grants no permission to read them.
type withoutServices struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t withoutServices) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != pathOfAPI {
		return t.next.RoundTrip(r)
	}
	answer := &http.Response{
		StatusCode: http.StatusNotFound, Status: "404 Not Found", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: http.NoBody,
	}
	data, err := json.Marshal(statusOf(answer, []byte(`{"error_msg": "CCI has no services"}`), time.Time{}))
	if err != nil {
		return nil, err
	}
	setBody(answer, data)
	return answer, nil
}

// renamed is a transport that translates Kubernetes requests for pods, namespaces, ConfigMaps and Secrets to API
// 2.0, and translates the responses back.
type renamed struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t renamed) RoundTrip(r *http.Request) (*http.Response, error) {
	rest, ok := strings.CutPrefix(r.URL.Path, corePrefix)
	if !ok {
		return t.next.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = cciPrefix+rest, "" // names of Kubernetes need no escapes
	if err := renameRequest(r); err != nil {
		return nil, err
	}
	answer, err := t.next.RoundTrip(r)
	if err != nil || !isJSON(answer.Header) || answer.StatusCode < 200 || answer.StatusCode >= 300 {
		return answer, err
	}
	if watch, _ := strconv.ParseBool(r.URL.Query().Get("watch")); watch {
		answer.Body = &renamedEvents{from: answer.Body, events: json.NewDecoder(answer.Body)}
		answer.ContentLength = -1
		answer.Header.Del("Content-Length")
		return answer, nil
	}
	data, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err == nil {
		data, err = renameVersion(data, cciVersion, coreVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("read the answer of CCI to %s %s: %w", r.Method, r.URL.Path, err)
	}
	setBody(answer, data)
	return answer, nil
}

// renameRequest replaces the version in the body of a request. The body of a patch has none.
func renameRequest(r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody || r.Method == http.MethodPatch {
		return nil
	}
	data, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err == nil {
		data, err = renameVersion(data, coreVersion, cciVersion)
	}
	if err != nil {
		return fmt.Errorf("write %s %s for CCI: %w", r.Method, r.URL.Path, err)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return nil
}

func isJSON(h http.Header) bool { return strings.HasPrefix(h.Get("Content-Type"), "application/json") }

func setBody(answer *http.Response, data []byte) {
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	answer.Header.Set("Content-Length", strconv.Itoa(len(data)))
}

// renameVersion replaces the version of an object, or of a list and its items. A Status has the Kubernetes
// version in both APIs.
func renameVersion(data []byte, from, to string) ([]byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	if kindOf(object) != "Status" {
		renameObject(object, from, to)
	}
	var items []map[string]json.RawMessage
	if list, has := object["items"]; has && json.Unmarshal(list, &items) == nil && items != nil {
		for _, item := range items {
			renameObject(item, from, to)
		}
		if err := setField(object, "items", items); err != nil {
			return nil, err
		}
	}
	return json.Marshal(object)
}

func renameObject(object map[string]json.RawMessage, from, to string) {
	if textField(object, "apiVersion") == from {
		_ = setField(object, "apiVersion", to) // never fails for a string
	}
}

func kindOf(object map[string]json.RawMessage) string { return textField(object, "kind") }

// textField returns the string value of a field, or "" if the field is missing or has another type.
func textField(object map[string]json.RawMessage, field string) (value string) {
	_ = json.Unmarshal(object[field], &value)
	return value
}

func setField(object map[string]json.RawMessage, field string, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		object[field] = data
	}
	return err
}

// renamedEvents translates the events of a watch.
type renamedEvents struct {
	from   io.Closer
	events *json.Decoder
	rest   []byte // the unread part of the current event
}

// Read implements io.Reader.
func (e *renamedEvents) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		var event map[string]json.RawMessage
		if err := e.events.Decode(&event); err != nil {
			return 0, err
		}
		if object := event["object"]; object != nil {
			data, err := renameVersion(object, cciVersion, coreVersion)
			if err != nil {
				return 0, fmt.Errorf("read an event of CCI: %w", err)
			}
			event["object"] = data
		}
		line, err := json.Marshal(event)
		if err != nil {
			return 0, err
		}
		e.rest = append(line, '\n')
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (e *renamedEvents) Close() error { return e.from.Close() }
