// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/accessreview"
)

// answers are the results of access reviews for an identity.
type answers struct{ may, fail atomic.Bool }

// answering makes client answer reviews about a user.
func answering(client *fake.Clientset, user string, mayList bool) *answers {
	says := &answers{}
	says.may.Store(mayList)
	client.PrependReactor("create", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if says.fail.Load() {
			return true, nil, errors.New("no answer")
		}
		if a.GetResource().Resource == "selfsubjectreviews" {
			return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user}}}, nil
		}
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: says.may.Load()}}, nil
	})
	return says
}

// checkerFor returns the checker of a service account. mayList decides whether the account may list.
func checkerFor(user string, mayList bool) *accessreview.Checker {
	client := fake.NewClientset()
	answering(client, user, mayList)
	return accessreview.New(client)
}

func TestSecurityC2AnIdentityThatMayOnlyGetOnlyGets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, configMapNamed("a", "1"))
		h.Behind(checkerFor("system:serviceaccount:ns:vk", false))
		h.run()
		defer h.end()
		h.Track(podUsing("p", "a", "late"))
		h.wantValue("a", "1")
		if _, err := h.value("late"); err == nil {
			t.Error("got a ConfigMap that does not exist")
		}
		if got := h.requests(); len(got) != 1 || got["get"] != 2 {
			t.Errorf("got requests %v, want two gets and nothing else", got)
		}
		if err := h.api.Tracker().Add(configMapNamed("late", "1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * firstPoll)
		if got := h.takeChanged(); len(got) != 1 || got[0] != "p" {
			t.Errorf("told %v of the ConfigMap that is there now, want the pod", got)
		}
		h.wantValue("late", "1")
		if err := h.api.Tracker().Update(configMaps.resource.WithVersion("v1"), configMapNamed("a", "2"), "ns"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * pollPeriod)
		h.wantValue("a", "2")
		h.setFail(errors.New("no answer"))
		time.Sleep(5 * pollPeriod)
		h.wantValue("a", "2")
		h.requests()
		time.Sleep(10 * pollPeriod)
		if got := h.requests(); got["get"] < 16 || got["get"] > 20 {
			t.Errorf("got requests %v for two objects in ten minutes, want 16 to 20 gets", got)
		}
		h.Forget("ns", "p", "uid-p")
		h.requests()
		time.Sleep(5 * pollPeriod)
		if got := h.requests(); len(got) != 0 {
			t.Errorf("got requests %v for objects that no pod names", got)
		}
	})
}

func TestIdentitiesThatMayListWatch(t *testing.T) {
	for name, checker := range map[string]*accessreview.Checker{
		"a node":                        checkerFor("system:node:n", true),
		"a service account with a role": checkerFor("system:serviceaccount:ns:vk", true),
		"no checker":                    nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, configMapNamed("a", "1"))
			h.Behind(checker)
			h.run()
			defer h.end()
			h.Track(podUsing("p", "a"))
			h.wantValue("a", "1")
			if got := h.requests(); got["list"] != 1 || got["watch"] != 1 {
				t.Errorf("%s: got requests %v, want a list and a watch", name, got)
			}
		})
	}
}

// TestRefusedListsEndInGets: the checker has no answer or an outdated one, so the store lists first. After the
// refusal it uses gets.
func TestRefusedListsEndInGets(t *testing.T) {
	for name, checker := range map[string]func() (*accessreview.Checker, func()){
		"no answer at first": func() (*accessreview.Checker, func()) {
			client := fake.NewClientset()
			answers := answering(client, "system:serviceaccount:ns:vk", false)
			answers.fail.Store(true)
			return accessreview.New(client), func() { answers.fail.Store(false) }
		},
		"the role was changed": func() (*accessreview.Checker, func()) {
			client := fake.NewClientset()
			answers := answering(client, "system:serviceaccount:ns:vk", true)
			return accessreview.New(client), func() { answers.may.Store(false) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, configMapNamed("a", "1"))
				g, then := checker()
				h.Behind(g)
				h.api.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(configMaps.resource.WithVersion("v1").GroupResource(), "", nil)
				})
				h.run()
				defer h.end()
				h.Track(podUsing("p", "a"))
				time.Sleep(time.Second)
				then()
				time.Sleep(2 * time.Minute)
				h.wantValue("a", "1")
				h.requests()
				time.Sleep(10 * time.Minute)
				if got := h.requests(); got["list"] > 0 || got["get"] == 0 {
					t.Errorf("got requests %v, want gets only", got)
				}
			})
		})
	}
}
