// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// notOlder refuses to resume a watch if the remote cluster has an older resource version than the watch, as after
// a restore from a backup. Its API server would send no events until it has reached that version, and the changes
// before would be lost. notOlder also refuses after an outage, because every restore includes one, and the
// cluster may have caught up by now. The reflector then starts again with a list.
//
// It costs a small list whenever a watch is resumed, every few minutes, and a full list after an outage.
type notOlder struct {
	next http.RoundTripper
	*outages
}

// outages records the watches whose API server did not answer. All clients of a remote cluster share it.
type outages struct {
	restored func() // called when the remote cluster was or may have been restored

	mu   sync.Mutex
	dark map[string]bool // guarded by mu; keyed by the watched kind
}

func (o *outages) recordOutage(of string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dark == nil {
		o.dark = map[string]bool{}
	}
	o.dark[of] = true
}

// endOutage reports whether there was an outage, and forgets it.
func (o *outages) endOutage(of string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.dark[of]
	delete(o.dark, of)
	return was
}

// RoundTrip implements http.RoundTripper.
func (n notOlder) RoundTrip(r *http.Request) (*http.Response, error) {
	q := queryOfWatch(r) // Get of nil returns ""
	from := q.Get("resourceVersion")
	if from == "" || from == "0" {
		return n.next.RoundTrip(r)
	}
	of := r.URL.Path + "?" + q.Get("labelSelector") + "&" + q.Get("fieldSelector")
	now, err := n.currentVersion(r)
	if err != nil {
		n.recordOutage(of)
		return nil, fmt.Errorf("ask for the resource version of the remote cluster: %w", err)
	}
	why := "the remote cluster did not answer, and may have been restored meanwhile"
	if order, err := resourceversion.CompareResourceVersion(now, from); err == nil && order < 0 { // versions that cannot be compared return an error
		why = fmt.Sprintf("the remote cluster was restored: it is at resource version %s, and was at %s", now, from)
		n.endOutage(of)
	} else if !n.endOutage(of) {
		return n.next.RoundTrip(r)
	}
	n.restored()
	status := apierrors.NewResourceExpired(why).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: int(status.Code), Status: fmt.Sprintf("%d %s", status.Code, http.StatusText(int(status.Code))), Proto: r.Proto, ProtoMajor: r.ProtoMajor,
		ProtoMinor: r.ProtoMinor, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: r,
	}, nil
}

// currentVersion returns the current resource version of a watched resource. It returns "" if the remote cluster
// refuses the list, because the watch gets the same error. It returns an error if the API server does not answer,
// also behind a proxy that does.
func (n notOlder) currentVersion(watch *http.Request) (string, error) {
	r := watch.Clone(watch.Context())
	q := r.URL.Query()
	for _, key := range []string{"watch", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "allowWatchBookmarks", "timeoutSeconds"} {
		q.Del(key)
	}
	q.Set("limit", "1")
	r.URL.RawQuery = q.Encode()
	r.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json")
	answer, err := n.next.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusInternalServerError {
		return "", fmt.Errorf("it answers %s", answer.Status)
	}
	var list metav1.PartialObjectMetadataList
	if answer.StatusCode != http.StatusOK || json.NewDecoder(answer.Body).Decode(&list) != nil {
		return "", nil
	}
	return list.ResourceVersion, nil
}
