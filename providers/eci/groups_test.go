// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/eci"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sign"
)

// region answers actions as the test defines.
type region struct {
	t     *testing.T
	asked []string // actions
	forms []url.Values
	says  map[string]func(url.Values) any // an int is a status, with the code NoSuch
}

func (r *region) client() *client {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_ = q.ParseForm()
		action := q.Header.Get(sign.HeaderACSAction)
		if err := eci.Check(action, q.PostForm); err != nil {
			r.t.Errorf("%s: ECI would refuse: %v", action, err)
		}
		r.asked, r.forms = append(r.asked, action), append(r.forms, q.PostForm)
		answer := r.says[action](q.PostForm)
		if status, ok := answer.(int); ok {
			w.WriteHeader(status)
			answer = map[string]string{"Code": "ContainerGroup.NotFound"}
			if status != http.StatusNotFound {
				answer = map[string]string{"Code": "Forbidden"}
			}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	r.t.Cleanup(server.Close)
	return newClient(server.URL, "cn-hangzhou", http.DefaultTransport, aKey, nil)
}

type object = map[string]any

var owner = identity.Owner{Cluster: "home", Node: "node"}

func podOf(n int) identity.Pod {
	return identity.Pod{Namespace: "ns", Name: fmt.Sprint("web-", n), UID: types.UID(fmt.Sprint("u-", n))}
}

// state returns the list entry of pod n's group.
func state(n int, status string) object {
	return object{"ContainerGroupId": "eci-" + strconv.Itoa(n), "Name": owner.Name(podOf(n)), "Status": status,
		"PodStatus": object{"ContainerStatuses": []object{{"Name": "a"}}}}
}

// described returns ECI's answer about the groups of a request.
func described(f url.Values) any {
	var ids []string
	_ = json.Unmarshal([]byte(f.Get("ContainerGroupIds")), &ids)
	var out []object
	for _, id := range ids {
		n, _ := strconv.Atoi(strings.TrimPrefix(id, "eci-"))
		var tags []object
		for k, v := range owner.Tags(podOf(n)) {
			tags = append(tags, object{"Key": k, "Value": v})
		}
		out = append(out, object{"ContainerGroupId": id, "Status": "Running", "CreationTime": "2026-01-01T00:00:00Z", "Tags": tags})
	}
	return object{"ContainerGroups": out}
}

func noInits(identity.Pod) bool { return false }

// TestAListHasAllPages checks that a list asks once to which pods the groups from before a restart belong, and
// not again.
func TestAListHasAllPages(t *testing.T) {
	r := &region{t: t, says: map[string]func(url.Values) any{"DescribeContainerGroups": described}}
	r.says["DescribeContainerGroupStatus"] = func(f url.Values) any {
		if f.Get("NextToken") == "" {
			var first []object
			for n := range 25 {
				first = append(first, state(n, stateRunning))
			}
			return object{"Data": first, "NextToken": "2"}
		}
		return object{"Data": []object{state(30, stateRunning)}}
	}
	g := newGroups(r.client(), owner, noInits)
	g.expect(podOf(30))
	got, err := g.list(t.Context())
	if err != nil || len(got) != 26 || got[0].pod != podOf(0) || got[25].pod != podOf(30) || got[0].created.IsZero() {
		t.Fatalf("got %d, %v", len(got), err)
	}
	if f := r.forms[0]; f.Get("Tag.1.Value") != "home" || f.Get("Tag.2.Value") != "node" || f.Get("SinceSecond") != "" {
		t.Errorf("asked with %v", f)
	}
	if want := []string{"DescribeContainerGroupStatus", "DescribeContainerGroupStatus", "DescribeContainerGroups", "DescribeContainerGroups"}; !slices.Equal(r.asked, want) {
		t.Errorf("asked %v", r.asked)
	}
	r.asked = nil
	if got, err := g.changed(t.Context(), time.Now().Add(-time.Minute)); err != nil || len(got) != 26 || len(r.asked) != 2 {
		t.Errorf("then got %d, %v by %v", len(got), err, r.asked)
	}
	if since, _ := strconv.Atoi(r.forms[len(r.forms)-1].Get("SinceSecond")); since < 60 || since > 90 {
		t.Errorf("asked since %d s", since)
	}
}

// TestAListIsCompleteOrAnError checks that a list fails if a page or the owner of a group is missing, or if the pages do not end.
func TestAListIsCompleteOrAnError(t *testing.T) {
	for name, says := range map[string]map[string]func(url.Values) any{
		"the second page fails": {"DescribeContainerGroupStatus": func(f url.Values) any {
			if f.Get("NextToken") == "" {
				return object{"Data": []object{state(1, stateRunning)}, "NextToken": "2"}
			}
			return 500
		}},
		"the pages do not end": {"DescribeContainerGroupStatus": func(url.Values) any { return object{"NextToken": "2"} }},
		"nobody says whose it is": {
			"DescribeContainerGroupStatus": func(url.Values) any { return object{"Data": []object{state(1, stateRunning)}} },
			"DescribeContainerGroups":      func(url.Values) any { return object{} },
		},
	} {
		if got, err := newGroups((&region{t: t, says: says}).client(), owner, noInits).list(t.Context()); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// TestAnEmptyListIsNotBelieved checks that a group stays although lists lack it, as long as ECI does not report
// it as gone: the right to read it may be gone instead.
func TestAnEmptyListIsNotBelieved(t *testing.T) {
	for name, c := range map[string]struct {
		log any
		ok  bool
	}{"it is there": {object{"Content": "x"}, false}, "no right to ask": {403, false}, "it is gone": {404, true}} {
		t.Run(name, func(t *testing.T) {
			have := []object{state(1, stateRunning)}
			r := &region{t: t, says: map[string]func(url.Values) any{
				"DescribeContainerGroupStatus": func(url.Values) any { return object{"Data": have} },
				"DescribeContainerLog":         func(url.Values) any { return c.log },
			}}
			g := newGroups(r.client(), owner, noInits)
			g.expect(podOf(1))
			if _, err := g.list(t.Context()); err != nil {
				t.Fatal(err)
			}
			have = nil
			if got, err := g.list(t.Context()); (err == nil) != c.ok || len(got) != 0 {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// TestInitContainersAreAskedFor checks that init containers are requested while the group starts, and not at
// rest.
func TestInitContainersAreAskedFor(t *testing.T) {
	now := statePending
	r := &region{t: t, says: map[string]func(url.Values) any{
		"DescribeContainerGroupStatus": func(url.Values) any { return object{"Data": []object{state(1, now)}} },
		"DescribeContainerGroups":      described,
	}}
	g := newGroups(r.client(), owner, func(identity.Pod) bool { return true })
	g.expect(podOf(1))
	for _, step := range []struct {
		state string
		asks  int
	}{{statePending, 2}, {statePending, 2}, {stateRunning, 1}, {stateRunning, 1}, {stateFailed, 2}} {
		now, r.asked = step.state, nil
		if got, err := g.changed(t.Context(), time.Now()); err != nil || len(got) != 1 || got[0].details == nil || len(r.asked) != step.asks {
			t.Errorf("%s: got %v, %v by %v", step.state, got, err, r.asked)
		}
	}
}

// TestEachGroupIsAskedFor checks an empty list: before it is believed, ECI is asked about each group except the
// groups deleted here.
func TestEachGroupIsAskedFor(t *testing.T) {
	have := []object{state(1, stateRunning), state(2, stateRunning), state(3, stateRunning)}
	gone := map[string]bool{"eci-1": true, "eci-3": true}
	var asked []string
	r := &region{t: t, says: map[string]func(url.Values) any{
		"DescribeContainerGroupStatus": func(url.Values) any { return object{"Data": have} },
		"DescribeContainerLog": func(f url.Values) any {
			asked = append(asked, f.Get("ContainerGroupId"))
			if gone[f.Get("ContainerGroupId")] {
				return 404
			}
			return object{"Content": "x"}
		},
	}}
	g := newGroups(r.client(), owner, noInits)
	for n := range 3 {
		g.expect(podOf(n + 1))
	}
	if _, err := g.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	have = nil
	for range 10 {
		if got, err := g.list(t.Context()); err == nil {
			t.Fatalf("believed though eci-2 is there: %v", got)
		}
	}
	g.deleted(instance{seen: seen{status: groupStatus{ContainerGroupID: "eci-2"}}, pod: podOf(2)})
	asked = nil
	if _, err := g.list(t.Context()); err != nil || slices.Contains(asked, "eci-2") || len(asked) != 2 {
		t.Errorf("asked for %v: %v", asked, err)
	}
}

// TestOneGroupHidesNoOther checks that missing details of a group with a known pod are no error, and that ECI is
// not asked about a group that is being deleted.
func TestOneGroupHidesNoOther(t *testing.T) {
	now := statePending
	r := &region{t: t, says: map[string]func(url.Values) any{
		"DescribeContainerGroupStatus": func(url.Values) any { return object{"Data": []object{state(1, now), state(2, stateRunning)}} },
		"DescribeContainerGroups":      func(url.Values) any { return object{} },
	}}
	g := newGroups(r.client(), owner, func(of identity.Pod) bool { return of == podOf(1) })
	g.expect(podOf(1))
	g.expect(podOf(2))
	if got, err := g.list(t.Context()); err != nil || len(got) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	now, r.asked = stateTerminating, nil
	if got, err := g.list(t.Context()); err != nil || len(got) != 2 || len(r.asked) != 1 {
		t.Errorf("got %v, %v by %v", got, err, r.asked)
	}
}

// TestWhoWasFirst checks that ECI is asked which of two groups of a pod was created first, although both are
// known by their names.
func TestWhoWasFirst(t *testing.T) {
	second := state(2, stateRunning)
	second["Name"] = owner.Name(podOf(1))
	r := &region{t: t, says: map[string]func(url.Values) any{
		"DescribeContainerGroups":      described,
		"DescribeContainerGroupStatus": func(url.Values) any { return object{"Data": []object{state(1, stateRunning), second}} },
	}}
	g := newGroups(r.client(), owner, noInits)
	g.expect(podOf(1))
	got, err := g.list(t.Context())
	if err != nil || len(got) != 2 || got[0].pod != podOf(1) || got[1].pod != podOf(1) || got[0].created.IsZero() || got[1].created.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
}
