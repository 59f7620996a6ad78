// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
)

// shelf is a fake ACI with groups that run nothing. It counts requests.
type shelf struct {
	owner identity.Owner

	mu     sync.Mutex
	states map[string]string    // guarded by mu; the states of the containers, by the names of groups
	jobs   map[string]bool      // guarded by mu; the groups that are never restarted
	hidden map[string]bool      // guarded by mu; the groups that lists lack
	fails  map[string]int       // guarded by mu; a request for the group is answered by this status
	asked  map[string]time.Time // guarded by mu; the time of the last request for a group
	lists  int                  // guarded by mu
	gets   int                  // guarded by mu
	slow   int                  // guarded by mu; the HTTP status of lists, 0 means success
}

// ServeHTTP implements http.Handler.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // a failed write leaves the client without an answer
	}
	refuse := func(status int) {
		answer(status, map[string]any{"error": map[string]string{"code": "Status", "message": "no"}})
	}
	if strings.Contains(r.URL.Path, "/oauth2/") {
		answer(http.StatusOK, map[string]any{"token_type": "Bearer", "access_token": "t", "expires_in": 1 << 20})
		return
	}
	if strings.HasSuffix(r.URL.Path, "/openid-configuration") {
		base := "https://azure.example/" + tenant
		answer(http.StatusOK, map[string]any{"issuer": base + "/v2.0", "authorization_endpoint": base + "/oauth2/v2.0/authorize", "token_endpoint": base + "/oauth2/v2.0/token"})
		return
	}
	_, name, _ := strings.Cut(r.URL.Path, "/containerGroups")
	if name = strings.Trim(name, "/"); name != "" {
		s.gets++
		s.asked[name] = time.Now()
		switch {
		case s.fails[name] != 0:
			refuse(s.fails[name])
		case s.states[name] == "":
			refuse(http.StatusNotFound)
		default:
			answer(http.StatusOK, s.group(name))
		}
		return
	}
	s.lists++
	if s.slow != 0 {
		refuse(s.slow)
		return
	}
	all := []any{}
	for name := range s.states {
		if !s.hidden[name] {
			all = append(all, s.group(name))
		}
	}
	answer(http.StatusOK, map[string]any{"value": all})
}

// group returns a group as ACI shows it. The caller holds s.mu.
func (s *shelf) group(name string) map[string]any {
	pod, policy, provisioned := s.pod(name), "Always", "Succeeded"
	if s.jobs[name] {
		policy = "Never"
	}
	state := s.states[name]
	if state == "Waiting" {
		provisioned = "Pending"
	}
	return map[string]any{"name": name, "tags": s.owner.Tags(pod), "properties": map[string]any{
		"provisioningState": provisioned, "restartPolicy": policy, "instanceView": map[string]any{"state": state},
		"containers": []any{map[string]any{"name": "main", "properties": map[string]any{
			"instanceView": map[string]any{"currentState": map[string]any{"state": state}},
		}}},
	}}
}

func (s *shelf) pod(name string) identity.Pod {
	for i := range 1000 {
		if pod := podNumber(i); s.owner.Name(pod) == name {
			return pod
		}
	}
	panic(name)
}

// edit changes the groups while holding s.mu.
func (s *shelf) edit(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// count returns the number of requests.
func (s *shelf) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists + s.gets
}

func podNumber(i int) identity.Pod {
	return identity.Pod{Namespace: "ns", Name: fmt.Sprintf("p-%d", i), UID: types.UID(fmt.Sprintf("u-%d", i))}
}

// onShelf returns a shelf with n running groups that are known already.
func onShelf(t *testing.T, n int) (*shelf, *groups, []string) {
	t.Helper()
	s := &shelf{
		owner: identity.Owner{Cluster: "home-1", Node: "aci"}, states: map[string]string{}, jobs: map[string]bool{}, hidden: map[string]bool{},
		fails: map[string]int{}, asked: map[string]time.Time{},
	}
	var names []string
	for i := range n {
		names = append(names, s.owner.Name(podNumber(i)))
		s.states[names[i]] = stateRunning
	}
	conf := (&azure{url: "https://azure.example"}).config("home-1")
	conf.Cloud.CAFile, conf.Requests = "", Requests{}
	conf, err := conf.complete()
	if err != nil {
		t.Fatal(err)
	}
	through := &http.Client{Transport: direct{s}}
	credential, err := conf.Credentials.Credential(conf.Cloud.Authority, through)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(conf, credential, through)
	if err != nil {
		t.Fatal(err)
	}
	g := newGroups(c, s.owner, conf.Requests.AtRest, func(identity.Pod) {})
	if all, err := g.list(t.Context()); err != nil || len(all) != n {
		t.Fatalf("%d groups, %v, want %d", len(all), err, n)
	}
	return s, g, names
}

// rounds lets time pass, with a round after each step. Partial rounds are fine.
func (g *groups) rounds(t *testing.T, step, of time.Duration) {
	t.Helper()
	for end := time.Now().Add(of); time.Now().Before(end); time.Sleep(step) {
		if _, err := g.list(t.Context()); err != nil && !errors.Is(err, poll.Partial) {
			t.Fatal(err)
		}
	}
}

// TestAGroupThatStaysPending checks that such a group does not take requests from the running groups: the limit
// of requests at rest holds, and each group has its turn.
func TestAGroupThatStaysPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 60
		s, g, names := onShelf(t, n)
		s.edit(func() { s.states[names[0]] = "Waiting" })
		g.saw(names[0], nil)
		s.edit(func() { s.states[names[0]] = "Waiting"; s.asked = map[string]time.Time{} })
		g.rounds(t, busyEvery, haste+time.Minute)
		before, since := s.count(), time.Now()
		g.rounds(t, busyEvery, 20*time.Minute)
		if n := s.count() - before; n > 20*15+5 {
			t.Errorf("%d requests in 20 minutes, want at most 15 a minute", n)
		}
		for _, name := range names {
			if s.asked[name].Before(since) {
				t.Errorf("group %s was not looked at for 20 minutes", name)
			}
		}
	})
}

// TestAListThatLacksAGroup checks that a list without an existing group is not believed: the provider asks ACI
// for the group.
func TestAListThatLacksAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g, names := onShelf(t, 3)
		time.Sleep(3 * haste)
		s.edit(func() { s.hidden[names[1]] = true })
		for range 5 {
			all, err := g.list(t.Context())
			if err != nil && !errors.Is(err, poll.Partial) {
				t.Fatal(err)
			}
			if err == nil && !slices.ContainsFunc(all, func(i instance) bool { return value(i.group.Name) == names[1] }) {
				t.Fatal("the group is lost, which ACI has")
			}
			time.Sleep(listEvery)
		}
		s.edit(func() { delete(s.states, names[1]) })
		for range 2 {
			time.Sleep(listEvery)
			all, err := g.list(t.Context())
			if err == nil && len(all) != 2 {
				t.Fatalf("%d groups, and ACI has 2", len(all))
			}
		}
	})
}

// TestRoundsWithoutAList checks that rounds without a list do not count as lists: an earlier list counts only
// once.
func TestRoundsWithoutAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g, _ := onShelf(t, 3)
		time.Sleep(listEvery)
		g.rounds(t, busyEvery, time.Second) // a list
		lists := s.lists
		partial := 0
		for range 5 {
			time.Sleep(busyEvery)
			if _, err := g.list(t.Context()); errors.Is(err, poll.Partial) {
				partial++
			}
		}
		if partial != 5-(s.lists-lists) || partial == 0 {
			t.Errorf("%d rounds say that they are partial, with %d lists of 5", partial, s.lists-lists)
		}
	})
}

// TestListsThatLackAStoppedGroup checks that the lists to confirm the end of a pod come quickly, and that a list
// with the group restarts the count.
func TestListsThatLackAStoppedGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g, names := onShelf(t, 3)
		g.stop(names[0])
		for i, hidden := range []bool{true, false, true, true} {
			s.edit(func() { s.hidden[names[0]] = hidden })
			time.Sleep(busyEvery)
			if _, err := g.list(t.Context()); err != nil {
				t.Fatalf("list %d does not come in haste: %v", i, err)
			}
		}
		time.Sleep(busyEvery)
		if _, err := g.list(t.Context()); !errors.Is(err, poll.Partial) {
			t.Errorf("a list comes when the pod is gone: %v", err)
		}
	})
}

// TestListsOfManyPagesAreFewer checks that, while groups start, each round is a list, but that lists of many
// pages are less frequent, because each page is a request.
func TestListsOfManyPagesAreFewer(t *testing.T) {
	for pages, want := range map[int]time.Duration{1: busyEvery, 4: busyEvery, 5: 2 * busyEvery, 10: 3 * busyEvery} {
		synctest.Test(t, func(t *testing.T) {
			s, g, names := onShelf(t, 3)
			s.edit(func() { s.states[names[0]] = "Waiting" })
			g.rounds(t, busyEvery, time.Second)
			g.pages = pages
			listed := g.listed
			for !g.wants(time.Now()) {
				time.Sleep(busyEvery)
			}
			if every := time.Since(listed); every != want {
				t.Errorf("a list of %d pages each %v, want %v", pages, every, want)
			}
		})
	}
}

// TestThrottledLooks checks that looks at groups stop when the service wants fewer requests.
func TestThrottledLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g, names := onShelf(t, 100)
		g.eager = true
		s.edit(func() {
			s.gets = 0
			for _, name := range names {
				s.fails[name] = http.StatusTooManyRequests
			}
		})
		time.Sleep(time.Second)
		if _, err := g.list(t.Context()); azlogin.StatusOf(err) != http.StatusTooManyRequests {
			t.Errorf("got %v, want what ACI says", err)
		}
		if s.gets > 2*together {
			t.Errorf("%d requests into a service that wants fewer, want at most %d", s.gets, 2*together)
		}
	})
}

// TestAGroupThatCannotBeRead checks that one unreadable group is no outage and does not hide the others. If no
// group can be read, that is an outage.
func TestAGroupThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g, names := onShelf(t, 5)
		g.eager = true
		s.edit(func() { s.fails[names[2]] = http.StatusInternalServerError })
		time.Sleep(time.Second)
		since := time.Now()
		if all, err := g.list(t.Context()); err != nil || len(all) != 5 {
			t.Errorf("%d groups and %v, want 5", len(all), err)
		}
		for _, name := range names {
			if s.asked[name].Before(since) {
				t.Errorf("group %s was not looked at", name)
			}
		}
		s.edit(func() {
			for _, name := range names {
				s.fails[name] = http.StatusInternalServerError
			}
		})
		time.Sleep(time.Second)
		if _, err := g.list(t.Context()); err == nil || errdefs.IsNotFound(err) {
			t.Errorf("none can be read, and the list says %v", err)
		}
	})
}

// TestJobsAreLookedAtMoreOften checks that the groups of Jobs are looked at more often than others, because they
// are expected to end.
func TestJobsAreLookedAtMoreOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g, names := onShelf(t, 60)
		s.edit(func() { s.jobs[names[7]] = true })
		g.rounds(t, busyEvery, 20*time.Minute) // until the provider has noticed the Job
		worst := time.Duration(0)
		for range 300 {
			time.Sleep(busyEvery)
			if _, err := g.list(t.Context()); err != nil && !errors.Is(err, poll.Partial) {
				t.Fatal(err)
			}
			worst = max(worst, time.Since(s.asked[names[7]]))
		}
		if worst > 2*time.Minute {
			t.Errorf("a job was not looked at for %s", worst)
		}
	})
}
